"""How many objects one operator serves: API calls, memory, CPU, and how long things take.

The API server is real. Everything else that the operator talks to is one process, the one that measures: the service
behind https, a controller that turns Deployments into pods, and the pages of all workers.
"""

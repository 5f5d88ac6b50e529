"""Where a part of an object that Spark carries out stands, by its SparkApplication and its record. Pure.

application_state  what the Spark operator reports of any application
snapshot           the copy of existing rows, with snapshot_state
query              the query that follows the tunnel, with query_state and query_lag
"""

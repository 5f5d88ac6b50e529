"""What goes wrong in the pods of workers, and what a person does about it."""

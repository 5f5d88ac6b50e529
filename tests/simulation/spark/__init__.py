"""Stories in which Spark copies the existing rows: a model of the Spark operator, its drivers and its executors."""

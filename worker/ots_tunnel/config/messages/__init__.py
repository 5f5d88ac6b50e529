"""What is said about documents: wrong fields, allowed values, the schema. Only where pydantic is."""

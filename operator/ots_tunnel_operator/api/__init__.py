"""The TablestoreTunnel object: models, schema and the CustomResourceDefinition."""

"""What Spark needs of an object: applications, their documents and their rights. Pure.

submission            what every SparkApplication has
snapshot_application  the copy of existing rows, with snapshot_document
query_application     the query that follows the tunnel, with query_document, query_session,
                      query_settings and invalid_query
rights                accounts and roles of drivers and executors
"""

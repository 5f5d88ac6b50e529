"""The batch writer `df.write.format("ots")`: options, checks beside the table, rows as records, the writer."""

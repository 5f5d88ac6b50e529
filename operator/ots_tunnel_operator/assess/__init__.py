"""What observations mean: lag, completion, snapshot, forecast, problems. Pure."""

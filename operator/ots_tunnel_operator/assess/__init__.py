"""What observations mean: lag, completion, forecasts, degradations."""

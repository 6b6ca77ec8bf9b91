"""People answer: a campaign keeps picks and labels, on our own page or in Label Studio."""

"""Labelling by people: campaigns with picks and answers, on our own page or in Label Studio."""

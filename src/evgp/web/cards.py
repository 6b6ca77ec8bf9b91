"""What the page shows of a row."""

from evgp.campaign.cards import Cell, cells

__all__ = ["Cell", "cells"]

"""What rides on rows beside their weights."""

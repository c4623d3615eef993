"""The types of groups, one room for each, and the conversions between them."""

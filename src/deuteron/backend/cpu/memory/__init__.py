"""The user's memory and the scratch memory: how elements are loaded, stored and updated, a few lanes at a time."""

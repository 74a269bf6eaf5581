"""The other engine has no such method."""

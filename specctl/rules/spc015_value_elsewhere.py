"""A value of speculation hangs on a variable or template mark that the file itself does not settle.

Command lines are read out of scripts, manifests and the like. Variables that the same file sets once are filled in;
any other is named, and the setting is not judged, for a guess could be wrong. Names of models may stay open: then only
what hangs on the model goes unchecked."""

SEVERITY = "warning"

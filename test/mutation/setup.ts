import fc from "fast-check";

// A property is checked for a limited time, which is enough for nearly all changes, and a failure is not shrunk.
fc.configureGlobal({ ...fc.readConfigureGlobal(), interruptAfterTimeLimit: 2_000, endOnFailure: true });

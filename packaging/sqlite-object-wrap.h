// Included before all sources of the SQLite driver. In the headers of Node.js 24.19 and newer, each wrapped object removes a
// hook when it is collected, which ends the process whenever the garbage collector does not run between two lines of
// JavaScript (nodejs/node#65446): a connection or a statement that nobody holds is enough. Older headers have no hooks, and
// the driver closes its connections by a hook of its own.
#include <node.h>
#define AddEnvironmentCleanupHook(...)
#define RemoveEnvironmentCleanupHook(...)
#include <node_object_wrap.h>
#undef AddEnvironmentCleanupHook
#undef RemoveEnvironmentCleanupHook

/* gpu/host/engine/registry.c: the host engine's table of methods, in the registry's order.
 *
 * Made from the same generated list as gpu/method.c, so that the two cannot differ in order.
 * Threads: constant data.
 */
#include "gpu/host/base/host.h"

#include <stddef.h>

#define METHOD(name) extern const struct host_method host_method_##name;
#include "method_list.inc"
#undef METHOD

#define METHOD(name) &host_method_##name,
static const struct host_method *const table[] = {
#include "method_list.inc"
};
#undef METHOD

const struct host_method *host_method_at(uint32_t index)
{
    return index < sizeof table / sizeof table[0] ? table[index] : NULL;
}

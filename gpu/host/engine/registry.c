/* gpu/host/engine/registry.c: the host engine's table of methods, in the registry's order.
 *
 * Made from the same generated list as gpu/method.c, so that the two cannot differ in order.
 * Threads: constant data.
 */
#include "gpu/host/base/host.h"

#include <stdbool.h>
#include <stddef.h>

#define METHOD(name)                                                                               \
    extern const struct host_method host_method_##name##_f32, host_method_##name##_f64;
#include "method_list.inc"
#undef METHOD

#define METHOD(name)                                                                               \
    {[PRECISION_FP32] = &host_method_##name##_f32, [PRECISION_FP64] = &host_method_##name##_f64},
static const struct host_method *const table[][PRECISION_COUNT] = {
#include "method_list.inc"
};
#undef METHOD

const struct host_method *host_method_at(uint32_t index, enum precision precision)
{
    const bool known =
        index < sizeof table / sizeof table[0] && (unsigned)precision < PRECISION_COUNT;
    return known ? table[index][precision] : NULL;
}

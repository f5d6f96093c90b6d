/* bench/cuda/middle.cu: checks and times the kernels for orders above 32 on an NVIDIA GPU.
 *
 *   cuda_middle --check [--n N] [--most MATRICES]
 *   cuda_middle --time [--quick] [--one] [--n N] [--results FOLDER]
 *   cuda_middle --profile N [--count MATRICES]
 *   cuda_middle --products
 *
 * --check tries both kernels and precisions, at orders on both sides of every change of kernel,
 * against a host reference, and ends with 1 when an answer is wrong. --time prints a table and
 * writes it to FOLDER/DATE-NAME-middle.csv, where NAME is the device's; --quick leaves out most
 * orders, and ends within a minute; --one leaves out batches. --profile takes inverses and LU by
 * clusters apart, in several ways (middle_large.cu), and --products tells the rates of products.
 * Uses the first device that CUDA shows; nothing else should run there. Needs up to 20 GB of its
 * memory. An error of CUDA or of the command line ends with 2.
 */
#include "bench/cuda/middle.cuh"

#include <cstring>

#include "bench/cuda/results.cuh"
#include "gpu/cuda/gemm/gemm.h"

static const int check_orders[] = {33,  34,  47,  48,  49,  64,  65,  80,  96,  97,   112, 127, 128,
                                   129, 144, 145, 160, 161, 176, 193, 208, 209, 224,  225, 255, 256,
                                   257, 288, 300, 320, 321, 512, 513, 640, 769, 1000, 1024};

static int check_all(int n, int64_t most)
{
    int passed = 0, failed = 0;
    for (int order : check_orders) {
        for (int k = 0; k < SMALL_KERNELS * PRECISION_COUNT && (n == 0 || order == check_orders[0]);
             k++) {
            bool right = middle_check((enum small_kernel)(k / PRECISION_COUNT),
                                      (enum precision)(k % PRECISION_COUNT), n ? n : order, most);
            passed += right;
            failed += !right;
        }
    }
    printf("cuda_middle: %d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}

struct cuda_products *middle_products(void)
{
    static struct cuda_products *products;
    if (!products)
        SMALL_TRY(cuda_products_create(nullptr, &products));
    return products;
}

/* What the command line asks for. */
struct settings {
    bool check, timed, quick, one, products;
    const char *folder;
    long n, profiled, count, max;
};

static int time_to(const struct settings *of, const char *device)
{
    return results_to(of->folder, device, "middle", [&](FILE *csv) {
        middle_time((int)of->n, of->quick, of->one, csv);
        return 0;
    });
}

static bool parse(int argc, char **argv, struct settings *to)
{
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--check") == 0)
            to->check = true;
        else if (strcmp(argv[i], "--time") == 0)
            to->timed = true;
        else if (strcmp(argv[i], "--quick") == 0)
            to->quick = true;
        else if (strcmp(argv[i], "--one") == 0)
            to->one = true;
        else if (strcmp(argv[i], "--products") == 0)
            to->products = true;
        else if (strcmp(argv[i], "--profile") == 0 && more)
            to->profiled = strtol(argv[++i], nullptr, 10);
        else if (strcmp(argv[i], "--count") == 0 && more)
            to->count = strtol(argv[++i], nullptr, 10);
        else if (strcmp(argv[i], "--n") == 0 && more)
            to->n = strtol(argv[++i], nullptr, 10);
        else if (strcmp(argv[i], "--most") == 0 && more)
            to->max = strtol(argv[++i], nullptr, 10);
        else if (strcmp(argv[i], "--results") == 0 && more)
            to->folder = argv[++i];
        else
            return false;
    }
    bool taken = to->n == 0 || (to->n > CUDA_SMALL_N_MAX && to->n <= CUDA_MIDDLE_N_MAX);
    bool large = to->profiled == 0 || (to->profiled > 1 && to->profiled <= CUDA_MIDDLE_N_MAX);
    return taken && large && to->count > 0 && to->max >= 0 &&
           to->check + to->timed + to->products + (to->profiled > 0) == 1;
}

int main(int argc, char **argv)
{
    struct settings settings = {};
    settings.count = 1;
    if (!parse(argc, argv, &settings)) {
        fprintf(stderr,
                "usage: cuda_middle --check|--time|--profile N|--products [--quick] "
                "[--one] [--n N] [--most MATRICES] [--count MATRICES] [--results FOLDER]\n");
        return 2;
    }
    struct cudaDeviceProp device;
    SMALL_TRY(cudaGetDeviceProperties(&device, 0));
    printf("%s\n", device.name);
    if (settings.check)
        return check_all((int)settings.n, settings.max);
    if (settings.timed)
        return time_to(&settings, device.name);
    if (settings.products)
        middle_products_profile();
    else
        middle_profile((int)settings.profiled, settings.count);
    return 0;
}

/* bench/cuda/small.cu: checks and times the kernels for small matrices on an NVIDIA GPU.
 *
 *   cuda_small --check [--n N]
 *   cuda_small --time [--n N] [--results FOLDER]
 *
 * --check tries every order, precision and kernel against a host reference and ends with 1 when an
 * answer is wrong. --time prints a table and writes it to FOLDER/DATE-NAME-small.csv, where NAME is
 * the device's. Uses the first device that CUDA shows; nothing else should run there. Needs up to
 * 17 GB of its memory. An error of CUDA or of the command line ends with 2.
 */
#include "bench/cuda/small.cuh"

#include <cctype>
#include <cstring>
#include <ctime>

static int check_all(int n)
{
    int passed = 0, failed = 0;
    for (int order = n ? n : 1; order <= (n ? n : CUDA_SMALL_N_MAX); order++) {
        for (int k = 0; k < SMALL_KERNELS * PRECISION_COUNT; k++) {
            bool right = small_check((enum small_kernel)(k / PRECISION_COUNT),
                                     (enum precision)(k % PRECISION_COUNT), order);
            passed += right;
            failed += !right;
        }
    }
    printf("cuda_small: %d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}

/* "NVIDIA H200" becomes "h200". */
static std::string short_name(const char *device)
{
    std::string name = strncmp(device, "NVIDIA ", 7) == 0 ? device + 7 : device;
    for (char &c : name)
        c = isalnum((unsigned char)c) ? (char)tolower((unsigned char)c) : '-';
    return name;
}

static int time_all(int n, const char *folder, const char *device)
{
    FILE *csv = nullptr;
    std::string path;
    if (folder) {
        char date[16];
        time_t now = time(nullptr);
        struct tm utc;
        strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
        path = std::string(folder) + "/" + date + "-" + short_name(device) + "-small.csv";
        csv = fopen(path.c_str(), "w");
        if (!csv) {
            perror(path.c_str());
            return 2;
        }
    }
    small_time(n, csv);
    if (csv && fclose(csv) != 0) {
        perror(path.c_str());
        return 2;
    }
    if (csv)
        printf("written: %s\n", path.c_str());
    return 0;
}

int main(int argc, char **argv)
{
    bool check = false, times = false, known = true;
    const char *folder = nullptr;
    long n = 0;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--check") == 0)
            check = true;
        else if (strcmp(argv[i], "--time") == 0)
            times = true;
        else if (strcmp(argv[i], "--n") == 0 && more)
            n = strtol(argv[++i], nullptr, 10);
        else if (strcmp(argv[i], "--results") == 0 && more)
            folder = argv[++i];
        else
            known = false;
    }
    if (!known || check == times || n < 0 || n > CUDA_SMALL_N_MAX) {
        fprintf(stderr, "usage: cuda_small --check|--time [--n N] [--results FOLDER]\n");
        return 2;
    }
    struct cudaDeviceProp device;
    SMALL_TRY(cudaGetDeviceProperties(&device, 0));
    printf("%s\n", device.name);
    return check ? check_all((int)n) : time_all((int)n, folder, device.name);
}

/* bench/cuda/results.cuh: the file that figures go to, FOLDER/DATE-DEVICE-PART.csv. Host code, one
 * thread.
 */
#ifndef BENCH_CUDA_RESULTS_CUH
#define BENCH_CUDA_RESULTS_CUH

#include <cctype>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>

/* The device's name as CUDA has it, in short: "h200". */
static inline std::string results_device(const char *device)
{
    std::string name = strncmp(device, "NVIDIA ", 7) == 0 ? device + 7 : device;
    for (char &c : name)
        c = isalnum((unsigned char)c) ? (char)tolower((unsigned char)c) : '-';
    return name;
}

/* measure(file), or measure(NULL) where folder is NULL. Returns what that returns, the program's
 * status; 2 where the file cannot be written, and says why. */
template <typename F>
static int results_to(const char *folder, const char *device, const char *part, F measure)
{
    char date[16];
    time_t now = time(nullptr);
    struct tm utc;
    if (!folder)
        return measure(nullptr);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
    std::string path =
        std::string(folder) + "/" + date + "-" + results_device(device) + "-" + part + ".csv";
    FILE *csv = fopen(path.c_str(), "w");
    int status = csv ? measure(csv) : 2;
    if (!csv || fclose(csv) != 0) {
        perror(path.c_str());
        return 2;
    }
    printf("written: %s\n", path.c_str());
    return status;
}

#endif

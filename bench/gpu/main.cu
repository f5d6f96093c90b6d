/* bench/gpu/main.cu: checks and times the CUDA kernels on an NVIDIA GPU, on the device's memory.
 *
 *   gpu --list
 *   gpu --check|--time|--ablate|--ways [SUBJECT...] [OPTION...]
 *   gpu --once N M [fp32] [inverse]
 *
 * --check tries every algorithm next to a reference, and ends with 1 when an answer is wrong.
 * --time prints figures next to their peers. --ablate prints times with a special path and without
 * it.
 * --ways times what a device's tuning chooses among. --once is for a profiler: an update by `ism`,
 * up to n = 1000 a batch of them, beyond one matrix whose A0 is diagonal, or with `inverse` one
 * update. All subjects, where none is named.
 *
 *   --n N               one order alone
 *   --n-max N           no larger order
 *   --matrices-max M    no larger batch, of checks
 *   --quick             fewer orders and smaller batches, of timings
 *   --results FOLDER    figures are written to FOLDER/SUBJECT.csv, over an older one
 *                       (SUBJECT-ablation.csv, SUBJECT-ways.csv)
 *   --commit TEXT       what stands in there for the build
 *
 * Figures: a row for each figure and peer. Times are the medians of three rounds after one that is
 * not counted, of the device's clock unless a subject says otherwise. Inputs are more bytes than
 * the second-level cache holds, or are rotated. Uses the first device that CUDA shows; nothing else
 * should run there. Needs up to 26 GB of its memory. An error of CUDA or of the command line ends
 * with 2.
 */
#include <cctype>
#include <cstring>
#include <ctime>

#include "bench/gpu/bench.h"

static const struct subject *const subjects[] = {
    &lu_small_subject, &arena_subject,    &lu_subject,        &tridiagonal_subject,
    &passes_subject,   &products_subject, &iterative_subject, &updates_subject,
    &ism_subject,      &auto_subject,     &structured_subject};

enum mode {
    MODE_NONE,
    MODE_CHECK,
    MODE_TIME,
    MODE_ABLATE,
    MODE_WAYS,
    MODE_LIST,
    MODE_ONCE
};

/* The command line. */
struct command {
    enum mode mode = MODE_NONE;
    struct settings wish;
    const char *folder = nullptr;
    std::string commit = "unknown", device;
    std::vector<std::string> words; /* subjects; or of --once */
};

static int usage()
{
    fprintf(stderr, "usage: gpu --list | --check|--time|--ablate|--ways [SUBJECT...] [--n N] "
                    "[--n-max N] [--matrices-max M] [--quick] [--results FOLDER] [--commit TEXT] | "
                    "--once N M [fp32] [inverse]\n");
    return 2;
}

static enum mode mode_of(const char *word)
{
    static const char *const names[] = {"",       "--check", "--time", "--ablate",
                                        "--ways", "--list",  "--once"};
    for (int mode = MODE_CHECK; mode <= MODE_ONCE; mode++) {
        if (strcmp(word, names[mode]) == 0)
            return (enum mode)mode;
    }
    return MODE_NONE;
}

static bool set_option(struct command *to, const char *name, const char *value)
{
    int64_t number = strtoll(value, nullptr, 10);
    if (strcmp(name, "--n") == 0)
        to->wish.n = number;
    else if (strcmp(name, "--n-max") == 0)
        to->wish.n_max = number;
    else if (strcmp(name, "--matrices-max") == 0)
        to->wish.matrices_max = number;
    else if (strcmp(name, "--results") == 0)
        to->folder = value;
    else if (strcmp(name, "--commit") == 0)
        to->commit = value;
    else
        return false;
    return number > 0 || to->folder == value || to->commit == value;
}

static bool parse(int argc, char **argv, struct command *to)
{
    for (int i = 1; i < argc; i++) {
        enum mode mode = mode_of(argv[i]);
        if (mode != MODE_NONE && to->mode == MODE_NONE)
            to->mode = mode;
        else if (strcmp(argv[i], "--quick") == 0)
            to->wish.quick = true;
        else if (argv[i][0] != '-')
            to->words.push_back(argv[i]);
        else if (i + 1 >= argc || !set_option(to, argv[i], argv[i + 1]))
            return false;
        else
            i++;
    }
    return to->mode != MODE_NONE;
}

static bool is_known(const std::string &name)
{
    for (const struct subject *subject : subjects) {
        if (name == subject->name)
            return true;
    }
    return false;
}

static bool is_wanted(const struct command &of, const struct subject &subject)
{
    for (const std::string &word : of.words) {
        if (word == subject.name)
            return true;
    }
    return of.words.empty();
}

static int check_all(const struct command &of)
{
    int failed = 0;
    for (const struct subject *subject : subjects) {
        if (!is_wanted(of, *subject) || !subject->check)
            continue;
        int found = subject->check(of.wish);
        printf("%s: %d failed\n", subject->name, found);
        fflush(stdout);
        failed += found;
    }
    return failed ? 1 : 0;
}

/* The device's name as CUDA has it, without what a CSV has for itself. */
static std::string device_name()
{
    struct cudaDeviceProp device;
    TRY(cudaGetDeviceProperties(&device, 0));
    std::string name = device.name;
    for (char &c : name)
        c = c == ',' || c == '"' ? ' ' : c;
    return name;
}

static std::string today()
{
    char date[16];
    time_t now = time(nullptr);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
    return date;
}

/* The figures of one subject, to a file where there is a folder. */
static int measure(const struct command &of, const struct subject &subject,
                   void (*run)(const settings &, recorder &))
{
    std::string path = of.folder ? std::string(of.folder) + "/" + subject.name +
                                       (of.mode == MODE_TIME     ? ""
                                        : of.mode == MODE_ABLATE ? "-ablation"
                                                                 : "-ways") +
                                       ".csv"
                                 : "";
    FILE *csv = of.folder ? fopen(path.c_str(), "w") : nullptr;
    if (of.folder && !csv) {
        perror(path.c_str());
        return 2;
    }
    if (csv)
        fputs("subject,shape,precision,what,value,unit,peer,peer_value,device,date,commit\n", csv);
    recorder to(subject.name, of.device + "," + today() + "," + of.commit, csv);
    run(of.wish, to);
    if (csv && fclose(csv) != 0) {
        perror(path.c_str());
        return 2;
    }
    if (csv)
        printf("written: %s\n", path.c_str());
    return 0;
}

static int measure_all(const struct command &of)
{
    for (const struct subject *subject : subjects) {
        auto run = of.mode == MODE_TIME     ? subject->time
                   : of.mode == MODE_ABLATE ? subject->ablate
                                            : subject->ways;
        int status = is_wanted(of, *subject) && run ? measure(of, *subject, run) : 0;
        if (status)
            return status;
    }
    return 0;
}

static int once(const struct command &of)
{
    bool narrow = false, update = false;
    for (size_t i = 2; i < of.words.size(); i++) {
        narrow = narrow || of.words[i] == "fp32";
        update = update || of.words[i] == "inverse";
    }
    int64_t n = of.words.size() > 1 ? strtoll(of.words[0].c_str(), nullptr, 10) : 0;
    int64_t m = of.words.size() > 1 ? strtoll(of.words[1].c_str(), nullptr, 10) : -1;
    if (n < 1 || m < 0 || of.words.size() > 4)
        return usage();
    ism_once(n, m, narrow ? PRECISION_FP32 : PRECISION_FP64, update);
    return 0;
}

static int list()
{
    for (const struct subject *subject : subjects)
        printf("%-12s %s%s%s%s\n", subject->name, subject->what, subject->check ? "; --check" : "",
               subject->ablate ? "; --ablate" : "", subject->ways ? "; --ways" : "");
    return 0;
}

int main(int argc, char **argv)
{
    struct command command;
    if (!parse(argc, argv, &command))
        return usage();
    if (command.mode == MODE_LIST)
        return list();
    for (const std::string &word : command.words) {
        if (command.mode != MODE_ONCE && !is_known(word))
            return usage();
    }
    command.device = device_name();
    printf("%s\n", command.device.c_str());
    if (command.mode == MODE_ONCE)
        return once(command);
    return command.mode == MODE_CHECK ? check_all(command) : measure_all(command);
}

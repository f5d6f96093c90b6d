/* demo/main.c: shows the daemon at work: `invertd-demo PATH-OF-INVERTD`.
 *
 * Starts the daemon, asks which methods it has, sends the matrices of problems.c to each of them,
 * and prints what went in, what came out, how good it is and how long it took. Ends with 0 only if
 * every answer keeps the service's promise (DEMO_RATIO_MAX) and the daemon stops cleanly.
 *
 * One thread. Matrices travel as binary tensors of the Open Inference Protocol; one small matrix
 * travels as JSON first, as a person would type it.
 */
#include "demo/demo.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WHOLE_MAX = 6 /* matrices up to this order are printed whole */
};

/* What one method made of one problem. */
struct outcome {
    double *first;    /* [batch, n, n]: the inverses, or the factors; owned */
    int32_t *pivots;  /* [batch, n], NULL when the method has none; owned */
    int64_t not_good; /* matrices with INFO != 0 */
    double rcond;     /* the smallest; NaN when one is null; INFINITY when the method has none */
    char algorithm[64];
    double seconds, ratio;
};

static void outcome_free(struct outcome *outcome)
{
    free(outcome->first);
    free(outcome->pivots);
    memset(outcome, 0, sizeof *outcome);
}

/* ---- Talking to the daemon ---- */

/* GET of a JSON document; NULL when it is not there. The caller owns it. */
static json_t *get_json(int port, const char *path)
{
    struct demo_answer answer;
    json_t *document = NULL;
    if (demo_http(port, "GET", path, NULL, 0, 0, &answer) && answer.status == 200)
        document = json_loadb(answer.body, answer.length, 0, NULL);
    else
        fprintf(stderr, "demo: GET %s: status %d\n", path, answer.status);
    demo_answer_free(&answer);
    return document;
}

/* The tensors that problems can be sent as. */
static const struct tensor {
    const char *name;
    enum {
        MATRIX,
        KNOWN, /* an approximate inverse */
        BAND,
        LEFT, /* factor of a product, to which a diagonal is added */
        RIGHT,
        ADDED
    } kind;
    int64_t below; /* of a band: 1 below the main diagonal, 0, or -1 above it */
} matrices[] = {{"A", MATRIX, 0}, {"V0", KNOWN, 0}},
  diagonals[] = {{"DL", BAND, 1}, {"D", BAND, 0}, {"DU", BAND, -1}},
  factors[] = {{"X", LEFT, 0}, {"Y", RIGHT, 0}, {"A0", ADDED, 0}};

/* How a method is sent a problem. */
struct form {
    const struct tensor *tensors; /* NULL: not at all */
    size_t count;
};

static bool takes(const json_t *inputs, const struct tensor *tensors, size_t count)
{
    bool same = json_array_size(inputs) == count;
    for (size_t i = 0; same && i < count; i++) {
        const json_t *name = json_object_get(json_array_get(inputs, i), "name");
        same = name != NULL && strcmp(json_string_value(name), tensors[i].name) == 0;
    }
    return same;
}

/* Takes them, among others? */
static bool takes_factors(const json_t *inputs)
{
    size_t found = 0, i;
    json_t *input;
    json_array_foreach((json_t *)inputs, i, input)
    {
        const char *name = json_string_value(json_object_get(input, "name"));
        for (size_t k = 0; name != NULL && k < 3; k++)
            found += strcmp(name, factors[k].name) == 0;
    }
    return found == 3;
}

static struct form form_of(const json_t *metadata)
{
    const json_t *inputs = json_object_get(metadata, "inputs");
    for (size_t count = 1; count <= 2; count++) {
        if (takes(inputs, matrices, count))
            return (struct form){matrices, count};
    }
    if (takes(inputs, diagonals, 3))
        return (struct form){diagonals, 3};
    if (takes_factors(inputs))
        return (struct form){factors, 3};
    return (struct form){NULL, 0};
}

static bool fits(struct form form, const struct demo_problem *problem)
{
    return form.tensors != NULL && (form.tensors != diagonals || problem->tridiagonal);
}

/* Without a V0, or without factors, the problem's A alone is sent. */
static struct form form_for(struct form form, const struct demo_problem *problem)
{
    if ((form.tensors == matrices && problem->v0 == NULL) ||
        (form.tensors == factors && problem->x == NULL))
        form = (struct form){matrices, 1};
    return form;
}

/* Numbers in a row of one matrix's part of a tensor; 1: it has one dimension. */
static int64_t part_columns(const struct demo_problem *problem, const struct tensor *tensor)
{
    if (tensor->kind == MATRIX || tensor->kind == KNOWN)
        return problem->n;
    return tensor->kind == LEFT || tensor->kind == RIGHT ? problem->m : 1;
}

static int64_t part_length(const struct demo_problem *problem, const struct tensor *tensor)
{
    int64_t rows = problem->n - (tensor->below == 0 ? 0 : 1);
    return rows * part_columns(problem, tensor);
}

/* Number i of the part of matrix `batch`. */
static double part_number(const struct demo_problem *problem, const struct tensor *tensor,
                          int64_t batch, int64_t i)
{
    const double *const numbers[] = {
        [MATRIX] = problem->a, [KNOWN] = problem->v0, [BAND] = problem->a,
        [LEFT] = problem->x,   [RIGHT] = problem->y,  [ADDED] = problem->a0};
    int64_t n = problem->n;
    if (tensor->kind != BAND)
        return numbers[tensor->kind][batch * part_length(problem, tensor) + i];
    const double *a = problem->a + batch * n * n;
    return tensor->below > 0 ? a[(i + 1) * n + i] : a[i * n + i - tensor->below];
}

/* The outputs to ask for, from the method's metadata: the first in binary, the others in JSON. */
static json_t *wanted_outputs(const json_t *metadata)
{
    json_t *wanted = json_array();
    size_t i;
    json_t *output;
    json_array_foreach(json_object_get(metadata, "outputs"), i, output)
    {
        json_t *one = json_pack("{s:O}", "name", json_object_get(output, "name"));
        if (i == 0)
            json_object_set_new(one, "parameters", json_pack("{s:b}", "binary_data", 1));
        json_array_append_new(wanted, one);
    }
    return wanted;
}

static size_t number_bytes(const struct demo_problem *problem)
{
    return problem->fp32 ? sizeof(float) : sizeof(double);
}

static json_t *describe(const struct demo_problem *problem, const struct tensor *tensor)
{
    int64_t length = part_length(problem, tensor), columns = part_columns(problem, tensor);
    int64_t bytes = problem->batch * length * (int64_t)number_bytes(problem);
    json_t *shape = columns > 1
                        ? json_pack("[I,I,I]", (json_int_t)problem->batch, (json_int_t)problem->n,
                                    (json_int_t)columns)
                        : json_pack("[I,I]", (json_int_t)problem->batch, (json_int_t)length);
    return json_pack("{s:s,s:o,s:s,s:{s:I}}", "name", tensor->name, "shape", shape, "datatype",
                     problem->fp32 ? "FP32" : "FP64", "parameters", "binary_data_size",
                     (json_int_t)bytes);
}

/* Writes a tensor; returns where it ends. */
static char *put_tensor(const struct demo_problem *problem, const struct tensor *tensor, char *to)
{
    int64_t length = part_length(problem, tensor);
    for (int64_t k = 0; k < problem->batch * length; k++) {
        double wide = part_number(problem, tensor, k / length, k % length);
        float single = (float)wide;
        memcpy(to, problem->fp32 ? (void *)&single : (void *)&wide, number_bytes(problem));
        to += number_bytes(problem);
    }
    return to;
}

/* The body of an inference: JSON of *json_bytes and the tensors behind it; NULL without memory. */
static char *make_body(const struct demo_problem *problem, struct form form, json_t *outputs,
                       size_t *json_bytes, size_t *length)
{
    json_t *inputs = json_array();
    size_t data_bytes = 0;
    for (size_t i = 0; i < form.count; i++) {
        json_array_append_new(inputs, describe(problem, &form.tensors[i]));
        data_bytes += (size_t)(problem->batch * part_length(problem, &form.tensors[i])) *
                      number_bytes(problem);
    }
    json_t *head = json_pack("{s:o,s:O}", "inputs", inputs, "outputs", outputs);
    char *text = json_dumps(head, JSON_COMPACT), *body = NULL;
    json_decref(head);
    if (text != NULL) {
        *json_bytes = strlen(text);
        *length = *json_bytes + data_bytes;
        body = malloc(*length);
    }
    if (body != NULL) {
        memcpy(body, text, *json_bytes);
        char *to = body + *json_bytes;
        for (size_t i = 0; i < form.count; i++)
            to = put_tensor(problem, &form.tensors[i], to);
    }
    free(text);
    return body;
}

/* The binary tensor behind the answer's JSON, as doubles; NULL when its size is not what it must
 * be. */
static double *read_first(const struct demo_problem *problem, const struct demo_answer *answer)
{
    size_t count = (size_t)(problem->batch * problem->n * problem->n);
    size_t one = number_bytes(problem);
    if (answer->length - answer->json_bytes != count * one)
        return NULL;
    double *numbers = calloc(count, sizeof *numbers);
    for (size_t i = 0; numbers != NULL && i < count; i++) {
        const char *from = answer->body + answer->json_bytes + i * one;
        float single;
        if (problem->fp32) {
            memcpy(&single, from, sizeof single);
            numbers[i] = single;
        } else {
            memcpy(&numbers[i], from, sizeof(double));
        }
    }
    return numbers;
}

/* The algorithm of a method that takes the same one with every matrix and so has no METHOD output:
 * the Invertd-Method header of an inversion in /v1. Writes "-" when there is none. */
static void ask_algorithm(int port, const char *method, char *algorithm, size_t size)
{
    static const char request[] = "{\"matrix\": [[2]]}";
    char path[160];
    struct demo_answer answer;
    snprintf(path, sizeof path, "/v1/invert?method=%s", method);
    bool good = demo_http(port, "POST", path, request, strlen(request), 0, &answer);
    snprintf(algorithm, size, "%s", good && answer.algorithm[0] ? answer.algorithm : "-");
    demo_answer_free(&answer);
}

/* The smaller of the two; NaN, which JSON writes as null, is smaller than any number. */
static double smaller_rcond(double smallest, const json_t *value)
{
    double rcond = json_is_number(value) ? json_number_value(value) : NAN;
    return isnan(smallest) || smallest <= rcond ? smallest : rcond;
}

/* Takes one JSON output into the outcome. False when it is not as long as it must be. */
static bool read_output(const struct demo_problem *problem, const char *name, const json_t *data,
                        struct outcome *outcome)
{
    size_t i, count = json_array_size(data);
    json_t *value;
    if (strcmp(name, "PIVOTS") == 0) {
        if (count != (size_t)(problem->batch * problem->n))
            return false;
        outcome->pivots = calloc(count, sizeof *outcome->pivots);
    }
    json_array_foreach((json_t *)data, i, value)
    {
        if (strcmp(name, "INFO") == 0)
            outcome->not_good += json_integer_value(value) != 0;
        if (strcmp(name, "RCOND") == 0)
            outcome->rcond = smaller_rcond(outcome->rcond, value);
        if (strcmp(name, "METHOD") == 0 && (i == 0 || strcmp(outcome->algorithm, "mixed") != 0)) {
            bool same = i == 0 || strcmp(outcome->algorithm, json_string_value(value)) == 0;
            snprintf(outcome->algorithm, sizeof outcome->algorithm, "%s",
                     same ? json_string_value(value) : "mixed");
        }
        if (strcmp(name, "PIVOTS") == 0 && outcome->pivots != NULL)
            outcome->pivots[i] = (int32_t)json_integer_value(value);
    }
    return true;
}

static bool read_outcome(const struct demo_problem *problem, const struct demo_answer *answer,
                         struct outcome *outcome)
{
    json_t *head = json_loadb(answer->body, answer->json_bytes, 0, NULL);
    bool good = head != NULL;
    size_t i;
    json_t *output;
    json_array_foreach(json_object_get(head, "outputs"), i, output)
    {
        if (i > 0)
            good = read_output(problem, json_string_value(json_object_get(output, "name")),
                               json_object_get(output, "data"), outcome) &&
                   good;
    }
    json_decref(head);
    outcome->first = read_first(problem, answer);
    return good && outcome->first != NULL;
}

/* Sends the problem to a method. The caller owns the outcome, also after false. */
static bool invert(int port, const char *method, const json_t *metadata,
                   const struct demo_problem *problem, struct outcome *outcome)
{
    char path[160];
    struct demo_answer answer = {0};
    size_t json_bytes = 0, length = 0;
    memset(outcome, 0, sizeof *outcome);
    outcome->rcond = INFINITY;
    json_t *outputs = wanted_outputs(metadata);
    struct form form = form_for(form_of(metadata), problem);
    char *body = make_body(problem, form, outputs, &json_bytes, &length);
    snprintf(path, sizeof path, "/v2/models/%s/infer", method);
    bool good = body != NULL && demo_http(port, "POST", path, body, length, json_bytes, &answer) &&
                answer.status == 200 && read_outcome(problem, &answer, outcome);
    if (!good)
        fprintf(stderr, "demo: POST %s: status %d %s\n", path, answer.status,
                answer.status == 200 || answer.body == NULL ? "" : answer.body);
    outcome->seconds = answer.seconds;
    if (good && outcome->algorithm[0] == '\0')
        ask_algorithm(port, method, outcome->algorithm, sizeof outcome->algorithm);
    free(body);
    json_decref(outputs);
    demo_answer_free(&answer);
    return good;
}

/* ---- Reports ---- */

static void print_matrix(const struct demo_problem *problem, const double *a)
{
    int64_t n = problem->n, zeros = 0;
    if (n <= WHOLE_MAX) {
        for (int64_t i = 0; i < n; i++) {
            printf("      ");
            for (int64_t j = 0; j < n; j++)
                printf(" %14.7g", a[i * n + j]);
            printf("\n");
        }
        return;
    }
    double largest = 0, trace = 0;
    for (int64_t i = 0; i < n * n; i++) {
        largest = fmax(largest, fabs(a[i]));
        zeros += a[i] == 0;
    }
    for (int64_t i = 0; i < n; i++)
        trace += a[i * n + i];
    printf("       %lld x %lld, first row %.6g %.6g %.6g ..., largest %.6g, trace %.6g, %lld%% "
           "zeros\n",
           (long long)n, (long long)n, a[0], a[1], a[2], largest, trace,
           (long long)(100 * zeros / (n * n)));
}

static void print_outcome(const char *method, const struct outcome *outcome)
{
    char rcond[32] = "-";
    if (!isinf(outcome->rcond))
        snprintf(rcond, sizeof rcond, "%.2e", outcome->rcond);
    printf("      %-14s %-21s %8lld   %-10s %-22s %8.3f   %8.2f ms\n", method, outcome->algorithm,
           (long long)outcome->not_good, rcond,
           outcome->pivots ? "|PA-LU|/(n|A|eps)" : "|I-XA|/(n|A||X|eps)", outcome->ratio,
           outcome->seconds * 1e3);
}

/* One problem through every method that takes it, which `tried` then reports. Returns how many
 * answers keep the promise. */
static int show_problem(int port, const struct demo_problem *problem, int number,
                        const json_t *models, json_t *tried)
{
    int good = 0;
    bool shown = false;
    const char *name;
    json_t *metadata;
    printf("\n%d. %s\n   %s\n   %lld matri%s of order %lld, %s. In%s:\n", number, problem->title,
           problem->story, (long long)problem->batch, problem->batch == 1 ? "x" : "ces",
           (long long)problem->n, problem->fp32 ? "FP32" : "FP64",
           problem->batch > 1 ? ", the first of them" : "");
    print_matrix(problem, problem->a);
    json_object_foreach((json_t *)models, name, metadata)
    {
        struct outcome outcome;
        if (!fits(form_of(metadata), problem))
            continue;
        json_object_set_new(tried, name,
                            json_integer(1 + json_integer_value(json_object_get(tried, name))));
        if (invert(port, name, metadata, problem, &outcome)) {
            outcome.ratio = outcome.pivots
                                ? demo_ratio_factors(problem, outcome.first, outcome.pivots)
                                : demo_ratio_inverse(problem, outcome.first);
            bool lawful = true;
            if (!shown && outcome.pivots == NULL) {
                printf("   Out, by %s:\n", name);
                print_matrix(problem, outcome.first);
                lawful = problem->law == NULL || problem->law(problem, outcome.first);
                printf("      %-14s %-21s %8s   %-10s %-22s %8s   %11s\n", "method", "way",
                       "INFO!=0", "RCOND", "residual", "ratio", "round trip");
                shown = true;
            }
            print_outcome(name, &outcome);
            good += lawful && outcome.not_good == 0 && outcome.ratio <= DEMO_RATIO_MAX;
        }
        outcome_free(&outcome);
    }
    return good;
}

static void print_legend(void)
{
    printf("\nHow to read the tables:\n"
           "      way         how the matrices were inverted (METHOD); mixed: in several ways\n"
           "      INFO!=0     matrices without a good inverse; 0 is right\n"
           "      RCOND       the smallest reciprocal condition number; near 0: nearly singular\n"
           "      ratio       the largest residual of the formula next to it, in the 1-norm; the\n"
           "                  promise is %g at most\n"
           "      round trip  the whole request over HTTP\n",
           DEMO_RATIO_MAX);
}

/* The smallest case, as a person types it. True when the answer is right. */
static bool show_json(int port)
{
    static const char request[] = "{\"matrix\": [[4, 7], [2, 6]]}";
    struct demo_answer answer;
    bool good = demo_http(port, "POST", "/v1/invert", request, strlen(request), 0, &answer) &&
                answer.status == 200;
    printf("\n0. As JSON: curl http://127.0.0.1:%d/v1/invert -d '%s'\n   %.*s\n", port, request,
           (int)(answer.body ? strcspn(answer.body, "\n") : 0), answer.body ? answer.body : "");
    json_t *document = good ? json_loadb(answer.body, answer.length, 0, NULL) : NULL;
    const json_t *row = json_array_get(json_object_get(document, "inverse"), 0);
    good = fabs(json_number_value(json_array_get(row, 0)) - 0.6) < 1e-12 &&
           fabs(json_number_value(json_array_get(row, 1)) + 0.7) < 1e-12;
    json_decref(document);
    demo_answer_free(&answer);
    return good;
}

/* The methods' metadata by name, as /v2 has it. The caller owns it. */
static json_t *get_models(int port)
{
    json_t *document = get_json(port, "/v1/methods"), *models = json_object();
    size_t i;
    json_t *method;
    json_array_foreach(json_object_get(document, "methods"), i, method)
    {
        char path[160];
        const char *name = json_string_value(json_object_get(method, "name"));
        snprintf(path, sizeof path, "/v2/models/%s", name);
        json_object_set_new(models, name, get_json(port, path));
    }
    json_decref(document);
    return models;
}

/* How many answers were asked for; -1 when a method was shown no problem at all. */
static int count_tried(const json_t *models, const json_t *tried)
{
    int asked = 0;
    const char *name;
    json_t *metadata;
    json_object_foreach((json_t *)models, name, metadata)
    {
        int of_method = (int)json_integer_value(json_object_get(tried, name));
        if (of_method == 0)
            fprintf(stderr, "demo: demo/problems.c has no problem for method %s\n", name);
        asked = of_method == 0 || asked < 0 ? -1 : asked + of_method;
    }
    return asked;
}

/* All of the demonstration between start and stop. */
static bool show_all(const struct demo_daemon *daemon, const struct demo_problem *problems)
{
    json_t *service = get_json(daemon->port, "/v2");
    json_t *models = get_models(daemon->port), *tried = json_object(), *metadata;
    const char *name;
    int good = 0;
    printf("%s %s on 127.0.0.1:%d; methods:", json_string_value(json_object_get(service, "name")),
           json_string_value(json_object_get(service, "version")), daemon->port);
    json_object_foreach(models, name, metadata) printf(" %s", name);
    printf("\n");
    bool json_good = show_json(daemon->port);
    print_legend();
    for (int p = 0; p < DEMO_PROBLEMS; p++)
        good += show_problem(daemon->port, &problems[p], p + 1, models, tried);
    int asked = count_tried(models, tried);
    printf("\n%d of %d answers keep the promise: residual ratio at most %g.\n", good + json_good,
           asked + 1, DEMO_RATIO_MAX);
    json_decref(service);
    json_decref(models);
    json_decref(tried);
    return json_good && asked > 0 && good == asked;
}

int main(int argc, char **argv)
{
    struct demo_daemon daemon;
    struct demo_problem problems[DEMO_PROBLEMS];
    if (argc != 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: invertd-demo PATH-OF-INVERTD\n");
        return 2;
    }
    /* The daemon is a child: what it finds buffered here it must not print again. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool good = demo_problems_make(problems);
    if (good && demo_daemon_start(argv[1], &daemon)) {
        good = show_all(&daemon, problems);
        bool stopped = demo_daemon_stop(&daemon);
        printf("The daemon stopped %s.\n", stopped ? "cleanly" : "with an error");
        good = good && stopped;
    } else {
        good = false;
    }
    demo_problems_free(problems);
    return good ? 0 : 1;
}

/* bench/cuda/timing.cuh: what timing.cu and peers.cu share: the memory of one order's measurements.
 */
#ifndef BENCH_CUDA_TIMING_CUH
#define BENCH_CUDA_TIMING_CUH

#include "bench/cuda/clock.cuh"

#define TIMING_MATRICES ((int64_t)1000000)

/* Several sets of matrices where they are few bytes, so that the second-level cache holds none of
 * what is read or written. */
template <typename T> struct timing_bed {
    int n;
    size_t entries; /* of a set */
    int sets;
    device_array<T> in, out;
    device_array<int32_t> extra, info;
    device_array<cuda_item> items;

    explicit timing_bed(int order)
        : n(order), entries((size_t)order * order * TIMING_MATRICES),
          sets((int)(CLOCK_CACHE_BYTES / (entries * sizeof(T)) + 1)), in(entries * sets),
          out(entries * sets), extra(extras() * sets), info(TIMING_MATRICES * sets), items(sets)
    {
        std::vector<cuda_item> all;
        for (int s = 0; s < sets; s++)
            all.push_back({in.at(s * entries), out.at(s * entries), extra.at(s * extras()),
                           info.at(s * TIMING_MATRICES), 0});
        items.put(all);
        clock_fill<<<1024, 256>>>(in.at(0), entries * sets);
        SMALL_TRY(cudaGetLastError());
    }

    /* The pivots of a set, or its RCOND, in units of int32. */
    int64_t extras() const
    {
        return TIMING_MATRICES * std::max(n, 2);
    }
};

/* Seconds of cuBLAS for a set; 0: not measured. */
struct timing_peers {
    double inverse = 0;      /* matinvBatched */
    double factor = 0;       /* getrfBatched */
    double factor_solve = 0; /* getrfBatched, then getriBatched */
};

struct timing_peers timing_peers_of(timing_bed<float> &bed);
struct timing_peers timing_peers_of(timing_bed<double> &bed);

#endif

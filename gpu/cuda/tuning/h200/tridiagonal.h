/* gpu/cuda/tuning/h200/tridiagonal.h: the shapes of tridiagonal/kernels.cu: the fastest of those
 * tried on an H200, 2026-11-21.
 */
#ifndef GPU_CUDA_TUNING_H200_TRIDIAGONAL_H
#define GPU_CUDA_TUNING_H200_TRIDIAGONAL_H

#define CUDA__TRI_SOLVE_THREADS 256 /* of a chunk; it decides the bits */
#define CUDA__TRI_WRITE_THREADS 128
/* Up to this order chunks are a warp's rows (warps.cuh), beyond it a block's; it decides the bits.
 */
#define CUDA__TRI_WARP_N_MAX 8192
#define CUDA__TRI_SMALL_THREADS 512 /* of a multiprocessor, at least, where a block does it all */
#define CUDA__TRI_STRIP_BLOCKS 4    /* of a multiprocessor, at least */

/* Of many small matrices at once (serial.cuh): blocks of a multiprocessor, and bytes of the
 * matrices of each. */
#define CUDA__TRI_SERIAL_BLOCKS 2
#define CUDA__TRI_SERIAL_BYTES (104 * 1024)
#define CUDA__TRI_SERIAL_STEPS 32 /* rows of a tile that a thread takes */

/* Parts of the workspace for each multiprocessor, where a block has one for all its matrices: as
 * many blocks as an H200's multiprocessor holds at once. More would only fill its cache. */
#define CUDA__TRI_SMALL_PARTS 16

#ifdef __cplusplus
template <typename T> struct cuda__tridiagonal_tuning {
    static constexpr bool is_wide = sizeof(T) == sizeof(double);
    /* Rows of a thread where a block does all of a matrix and nothing is merged; they decide the
     * bits. */
    static constexpr int each(int rows)
    {
        return is_wide && rows == 128 ? 1 : 2;
    }
    /* Rows of a tile: of a block that does all, and of others by lines and by levels. */
    static constexpr int small_steps = 64, line_steps = is_wide ? 32 : 64, level_steps = 16;
    static constexpr int shifted_steps = 64; /* by lines, where rows do not begin alike */
};
#endif

#endif

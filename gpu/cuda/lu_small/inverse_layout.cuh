/* gpu/cuda/lu_small/inverse_layout.cuh: where inverse_rows.cuh keeps its matrices in shared memory,
 * worked out by the compiler. */
#ifndef GPU_CUDA_LU_SMALL_INVERSE_LAYOUT_CUH
#define GPU_CUDA_LU_SMALL_INVERSE_LAYOUT_CUH

#include <type_traits>

#include "gpu/cuda/lu_small/rows.cuh"
#include "gpu/cuda/lu_small/run.cuh"

/* How a warp's matrices lie in shared memory. The padding is what costs the fewest trips, by a
 * count of a warp's accesses: rows read by their lanes, the result scattered, and the copies in and
 * out. */
template <typename T, int N, int Rows, int Block> struct cuda__inverse_layout {
    typedef cuda__rows<T, N, Rows> shape;
    static constexpr int width = shape::width;
    static constexpr int pieces = shape::line_pieces;
    static constexpr bool whole = shape::lanes == 1 && N * N % width == 0; /* all of A a lane */
    static constexpr bool packed = N % width != 0 && !whole; /* the matrices are one run */
    static constexpr int block = Block < N ? Block : N;

    struct choice {
        int line, stride;
        bool wide; /* rows in pieces of 16 bytes, not entry by entry */
    };

    static constexpr int matrix_of(int lane)
    {
        return lane / shape::lanes < shape::held ? lane / shape::lanes : shape::held - 1;
    }

    static constexpr int member_of(int lane)
    {
        int member = lane - matrix_of(lane) * shape::lanes;
        return member < shape::lanes ? member : shape::lanes - 1;
    }

    /* From one matrix to the next, as they are copied. */
    static constexpr int apart(choice c)
    {
        return packed ? N * N : c.stride;
    }

    static constexpr int read_trips(choice c)
    {
        int address[CUDA__WARP] = {};
        for (int lane = 0; lane < CUDA__WARP; lane++)
            address[lane] =
                (int)sizeof(T) * (matrix_of(lane) * apart(c) + member_of(lane) * c.line);
        return cuda__trips(address, (int)sizeof(T) * (c.wide || whole ? width : 1));
    }

    /* Rows and columns in some disorder. */
    static constexpr int scatter_trips(choice c, int j)
    {
        int address[CUDA__WARP] = {};
        for (int lane = 0; lane < CUDA__WARP; lane++) {
            int matrix = matrix_of(lane);
            int row = ((member_of(lane) * 40503 + matrix * 9973 + j * 7919) >> 4) % N;
            address[lane] =
                (int)sizeof(T) * (matrix * apart(c) + row * c.line + (matrix * 7 + j * 3) % N);
        }
        return cuda__trips(address, (int)sizeof(T));
    }

    static constexpr int copy_trips(choice c)
    {
        int address[CUDA__WARP] = {}, each = c.wide || whole ? width : 1;
        int length = c.line == N ? N * N : N, lines = N * N / length;
        for (int lane = 0; lane < CUDA__WARP; lane++) {
            int line = lane / (length / each), e = lane % (length / each) * each;
            int matrix = line / lines % shape::held;
            address[lane] = (int)sizeof(T) * (matrix * apart(c) + line % lines * c.line + e);
        }
        return cuda__trips(address, (int)sizeof(T) * each);
    }

    /* Of one 16-byte piece of an old row, each matrix's own, that all its lanes read. */
    static constexpr int old_trips(choice c)
    {
        int load[8] = {}, worst = 2;
        for (int matrix = 0; matrix < shape::held; matrix++) {
            int &bank = load[(int)sizeof(T) * matrix * c.stride / 16 % 8];
            bank++;
            worst = bank > worst ? bank : worst;
        }
        return worst;
    }

    static constexpr long cost(choice c)
    {
        int each = c.wide || whole ? width : 1, length = c.line == N ? N * N : N;
        int across = length / each, together = across < CUDA__WARP ? CUDA__WARP / across : 1;
        int lines = shape::held * N * N / length;
        long copies =
            (long)((lines + together - 1) / together) * ((across + CUDA__WARP - 1) / CUDA__WARP);
        long scatter = scatter_trips(c, 0) + scatter_trips(c, 1) + scatter_trips(c, 2);
        return Rows * N / each * read_trips(c) + 2 * copies * (copy_trips(c) + 1) +
               Rows * N * scatter / 3 + N * (N - block) / width * old_trips(c);
    }

    /* A matrix's place also takes the old rows of a panel, or a row of sums for each lane. */
    static constexpr int min_stride(int line)
    {
        int least = packed ? width : N * line;
        int sums = shape::lanes == 1 ? 0 : shape::lanes * pieces * width;
        int old = block < N ? block * pieces * width : 0;
        least = sums > least ? sums : least;
        least = old > least ? old : least;
        return (least + width - 1) / width * width;
    }

    static constexpr choice best()
    {
        choice best = {N, min_stride(N), false};
        for (int wide = 0; wide <= (N % width == 0 ? 1 : 0); wide++) {
            for (int line = N; line <= (whole || packed ? N
                                        : wide          ? N + width
                                                        : N + 1);
                 line += wide ? width : 1) {
                for (int pad = 0; pad < 8; pad++) {
                    choice next = {line, min_stride(line) + pad * width, wide != 0};
                    best = cost(next) < cost(best) ? next : best;
                }
            }
        }
        return best;
    }

    static constexpr choice chosen = best();
    static constexpr int line = chosen.line;
    static constexpr int stride = chosen.stride; /* of the old rows and the sums */
    static constexpr int io_stride = apart(chosen);
    static constexpr bool wide = chosen.wide && !whole;
    static constexpr int grain = packed ? (N % 2 == 0 ? 2 : 1)
                                 : wide ? width
                                        : 1; /* read at once */
    /* Of an old row, and of a row of sums; in other banks than the next one if there is room. */
    static constexpr int old_line =
        (block * (pieces | 1) * width <= stride ? pieces | 1 : pieces) * width;
    static constexpr int sum_line =
        (shape::lanes * (pieces | 1) * width <= stride ? pieces | 1 : pieces) * width;
    typedef cuda__run<T, N, shape::held> run;
    typedef cuda__stage<T, N, shape::held, line, stride> padded;
    typedef typename std::conditional<packed, run, padded>::type stage;
    static constexpr int places = packed && run::places > shape::held *stride
                                      ? (run::places + 3) / 4 * 4
                                      : shape::held *stride;
};

#endif

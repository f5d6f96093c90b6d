/* auto: looks at each matrix and takes the cheapest algorithm that is as accurate as lu. */
#ifndef GPU_METHODS_AUTO_H
#define GPU_METHODS_AUTO_H

enum method_auto_option {
    METHOD_AUTO_SPD
};

#endif

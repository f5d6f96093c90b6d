"""Pictures of the benches' figures, as SVG."""

import html
import math


class Plot:
    """An SVG with logarithmic axes, or a linear one upwards."""

    width, height, left, right, top, bottom = 800, 470, 70, 150, 70, 46

    def __init__(self, title, about, xs, ys, log_y):
        self.xs, self.ys, self.log_y, self.next_label = xs, ys, log_y, {}
        self.out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
                    f'height="{self.height}">',
                    f'<rect width="{self.width}" height="{self.height}" fill="#fff"/>']
        self.text(12, 22, title, size=15, anchor="start")
        self.text(12, 40, about, anchor="start")

    def text(self, x, y, what, size=11, anchor="middle", colour="#222"):
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" font-family="sans-serif" '
                        f'font-size="{size}" text-anchor="{anchor}" fill="{colour}">'
                        f'{html.escape(what)}</text>')

    def x(self, value):
        low, high = map(math.log, self.xs)
        span = self.width - self.left - self.right
        return self.left + (math.log(value) - low) / (high - low) * span

    def y(self, value):
        scale = math.log if self.log_y else float
        low, high = map(scale, self.ys)
        span = self.height - self.top - self.bottom
        return self.height - self.bottom - (scale(value) - low) / (high - low) * span

    def line(self, points, colour, dash="", thick=1.0):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                        f'stroke-width="{thick}" stroke-dasharray="{dash}"/>')

    def grid(self, xticks, yticks, xlabel, ylabel):
        right, floor = self.width - self.right, self.height - self.bottom
        for value in xticks:
            self.line([(self.x(value), self.top), (self.x(value), floor)], "#e4e7eb")
            self.text(self.x(value), floor + 16, str(value))
        for value in yticks:
            self.line([(self.left, self.y(value)), (right, self.y(value))], "#e4e7eb")
            self.text(self.left - 6, self.y(value) + 4, f"{value:,g}", anchor="end")
        self.text((self.left + right) / 2, self.height - 10, xlabel)
        self.text(12, self.top - 6, ylabel, anchor="start")

    def series(self, points, label, colour, dash=""):
        points = [(x, y) for x, y in points if y > 0]
        self.line([(self.x(x), self.y(y)) for x, y in points], colour, dash, 2.0)
        y = self.y(points[-1][1]) + 4
        while any(abs(y - other) < 12 for other in self.next_label):
            y += 12
        self.next_label[y] = label
        self.text(self.width - self.right + 8, y, label, anchor="start", colour=colour)

    def write(self, path):
        path.write_text("\n".join(self.out) + "\n</svg>\n", encoding="utf-8")

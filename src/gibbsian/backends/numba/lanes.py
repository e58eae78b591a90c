"""Vectors of 64 bytes for the few kernels where the compiler does not find them by itself.

What is emitted is plain LLVM (vector loads, constant shuffles, multiply-adds that may fuse), so it compiles
for any processor: one with narrower vectors takes two or four for one.
"""

from llvmlite import ir
from numba import types

VECTOR_BYTES = 64
MAY_FUSE = ("contract",)


def address(context, builder, kind, array):
    """Return the address of an array, whose elements must stand side by side."""
    if kind.layout != "C":
        raise TypeError(f"an array of layout {kind.layout} has no lanes")
    return context.make_array(kind)(context, builder, array).data


class Lanes:
    """Emits code for one element type, float64 or float32, one vector or several at a time."""

    def __init__(self, builder, dtype, vectors=1):
        self.builder = builder
        self.element = ir.DoubleType() if dtype == types.float64 else ir.FloatType()
        self.bytes = 8 if dtype == types.float64 else 4
        self.count = vectors * VECTOR_BYTES // self.bytes
        self.type = ir.VectorType(self.element, self.count)

    def spread(self, scalar):
        """Return a vector with the same number in every lane."""
        number = self.builder.fptrunc(scalar, self.element) if self.bytes == 4 else scalar
        one = self.builder.insert_element(ir.Constant(self.type, ir.Undefined), number, ir.IntType(32)(0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.count), [0] * self.count)
        return self.builder.shuffle_vector(one, one, mask)

    def zeros(self):
        """Return a vector of zeros."""
        return ir.Constant(self.type, [self.element(0.0)] * self.count)

    def permute(self, vector, bits):
        """Return the vector whose lane k is lane ``k ^ bits``."""
        if bits == 0:
            return vector
        order = [k ^ bits for k in range(self.count)]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.count), order)
        return self.builder.shuffle_vector(vector, vector, mask)

    def place(self, base, index):
        """Return the address of a vector of a table."""
        table = self.builder.bitcast(base, self.type.as_pointer())
        return self.builder.gep(table, [index])

    def load(self, pointer):
        """Read a vector that stands at a multiple of its element's size at least."""
        return self.builder.load(pointer, align=self.bytes)

    def store(self, vector, pointer):
        """Write a vector."""
        self.builder.store(vector, pointer, align=self.bytes)

    def combine(self, a, x, b, y):
        """Return ``a x + b y``."""
        scaled = self.builder.fmul(b, y, flags=MAY_FUSE)
        return self.builder.fadd(self.builder.fmul(a, x, flags=MAY_FUSE), scaled, flags=MAY_FUSE)

    def butterfly(self, vector, bit):
        """Return the sum of each two lanes that differ in `bit` in the lower one, their difference in the upper."""
        signs = [self.element(-1.0 if k & bit else 1.0) for k in range(self.count)]
        signed = self.builder.fmul(vector, ir.Constant(self.type, signs))
        return self.builder.fadd(self.permute(vector, bit), signed, flags=MAY_FUSE)

    def larger(self, a, b):
        """Return the larger number of each lane."""
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def largest(self, vector):
        """Return the largest lane as a float64."""
        width = self.count // 2
        while width:
            vector = self.larger(vector, self.permute(vector, width))
            width //= 2
        number = self.builder.extract_element(vector, ir.IntType(32)(0))
        return self.builder.fpext(number, ir.DoubleType()) if self.bytes == 4 else number

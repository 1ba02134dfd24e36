"""Expressions in a kernel, for the question whether Numba compiles them: calls, attributes, arguments.

``x`` is a float64 array, ``m`` one of two dimensions, ``n`` an int64.
"""


def _parts(text: str) -> list[str]:
    """Return the expressions of a text, which stand in lines and between semicolons."""
    return [part.strip() for part in text.replace("\n", ";").split(";") if part.strip()]


def _of(module: str, text: str) -> list[str]:
    return [f"{module}.{part}" for part in _parts(text)]


ATTRIBUTES = (
    "T T.T base ctypes data dtype flags flat imag itemsize nbytes ndim real shape size strides".split()
)
METHODS = """
    all() any() argmax() astype(np.float32) clip(0,1) conj() conjugate() copy() cumsum() dot(m) fill(0)
    flatten()
    max() mean() min() nonzero() prod() ravel() repeat(2) reshape((2,2)) reshape(4) reshape(n) round() sort()
    squeeze() std() sum() swapaxes(0,1) take(0) tolist() transpose() view(np.int64) item()
""".split()
OF_ARRAYS = [f"m.{name}" for name in ATTRIBUTES + METHODS] + [
    f"x.{name}" for name in ("ravel()", "T", "sum()", "reshape(2,2)", "reshape((2,2))", "view(np.int64)")
]
OF_CUDA = _of(
    "cuda",
    """
    grid(1);grid(2);grid(3);grid(4);grid(n);grid(x.ndim);gridsize(1);gridsize(n);threadIdx.w;laneid;warpsize
    syncthreads_count(n);syncthreads_count(x[0]);syncthreads_count(n>0);syncthreads_and(n);syncthreads_and(x[0])
    syncthreads_or(n);syncthreads_or(x[0]);all_sync(0xffffffff,x[0]);all_sync(0xffffffff,n)
    any_sync(0xffffffff,n);any_sync(0xffffffff,x[0]);any_sync(0xffffffff,n>0);eq_sync(0xffffffff,x[0])
    eq_sync(0xffffffff,n);ballot_sync(0xffffffff,x[0]);ballot_sync(0xffffffff,n);ballot_sync(n,n>0)
    match_any_sync(0xffffffff,x[0]);match_all_sync(0xffffffff,x[0]);match_any_sync(0xffffffff,n)
    shfl_sync(0xffffffff,x[0],n);shfl_sync(0xffffffff,n,0);shfl_up_sync(0xffffffff,x[0],1)
    shfl_down_sync(0xffffffff,n,n);shfl_xor_sync(0xffffffff,np.float32(x[0]),1);shfl_sync(0xffffffff,True,0)
    popc(n);popc(x[0]);brev(n);clz(n);clz(x[0]);ffs(n);ffs(x[0]);fma(n,n,n);fma(x[0],x[0],x[0])
    fma(np.float32(x[0]),n,np.float32(1));cbrt(n);cbrt(x[0]);selp(n>0,n,n);selp(n,n,n);selp(n>0,n,x[0])
    nanosleep(n);nanosleep(8);syncwarp();syncwarp(n);activemask();lanemask_lt();threadfence();threadfence_block()
    atomic.add(x,0,n);atomic.add(x,n,1.0);atomic.add(x,x[0],1);atomic.sub(x,0,1);atomic.max(x,0,n)
    atomic.min(x,0,n);atomic.nanmax(x,0,1.0);atomic.and_(x,0,1);atomic.or_(x,0,1);atomic.inc(x,0,1)
    atomic.dec(x,0,1);atomic.exch(x,0,1.0);atomic.cas(x,0,0.0,1.0);atomic.cas(x,0,0,1);atomic.add(n,0,1)
    atomic.add(m,(0,1),1.0);atomic.add(m,0,1.0);atomic.add(m[0],1,1.0);local.array(n,float32)
    local.array(4,float32);local.array(4,'float32');local.array((2,3),np.float32);local.array(4,float)
    local.array(4,int);local.array(x.size,float32);shared.array(n,float32);shared.array(4,np.int8)
    shared.array(0,float32);shared.array((2,n),float32);float32x2(1,2);float32x2(1);float4(1,2,3,4)
    uchar2(1,2);short3(1,2,3);long2(1,2);ulonglong1(1);char4(1,2,3,4);ushort2(n,n);int2(x[0],1);cg.this_grid()
    """,
)
OF_PYTHON = _parts("""
    range(n);len(x);len(m);len((1,2));abs(n);abs(x[0]);round(x[0]);round(x[0],2);min(n,x[0]);max(n,1,2)
    sum((1,2));pow(n,2);divmod(n,3);int(x[0]);float(n);bool(n);complex(n);hash(n);id(n);hex(n);bin(n)
    dict();set();[i for i in range(3)];{1:2};lambda:n;sorted((2,1));reversed((1,2));any((0,1));all((0,1))
    open('f');input();globals();getattr(x,'size');x[0].is_integer();n.bit_length();n.real;x[0].imag
    x['a'];x[0,0];m[0][0];m[0,0,0];m[x[0]];x[n:];x[::2];m[:,0];m[...,0];x[None];x[n>0];m[(0,1)];x[-1]
    x==x;x+1;x+x;x*n;-x;x@x;not x;x and n;x is None;x is x;n in (1,2);n in x;n if n else x[0]
    print(n);print('a',n,x[0]);print(x);str(n)+'a';n<<2;x[0]<<2;x[0]//2;x[0]%2;n**2;x[0]**n;n/0;~n;~x[0]
""")
OF_NUMPY = _of(
    "np",
    """
    abs(n);maximum(n,x[0]);minimum(x[0],1);int32(n);float16(n);float64(n);uint8(n);bool_(n);sin(x[0]);sin(n)
    sin(x);pi;e;inf;isnan(x[0]);isinf(x[0]);sqrt(n);sqrt(x[0]);power(n,2);power(x[0],n);sign(x[0]);floor(x[0])
    ceil(x[0]);rint(x[0]);trunc(x[0]);exp(x[0]);log(x[0]);log2(x[0]);arctan2(x[0],n);hypot(x[0],x[0]);add(n,1)
    multiply(x[0],2);floor_divide(n,2);mod(n,2);bitwise_and(n,1);left_shift(n,1);logical_and(n,1);sort(x)
    unique(x);linalg.norm(x);random.rand();fft.fft(x);float128(n);int32(x);concatenate((x,x));full(3,1)
    """,
)
OF_MATH = _of(
    "math",
    """
    sin(n);sin(x[0]);pow(n,2);pow(x[0],n);fmod(n,2);gcd(n,2);factorial(n);comb(n,2);isqrt(n);hypot(n,n)
    hypot(n,n,n);fabs(n);floor(x[0]);ceil(n);trunc(x[0]);erf(n);erfc(x[0]);gamma(n);lgamma(x[0]);isnan(n)
    isinf(x[0]);isfinite(n);copysign(n,x[0]);ldexp(x[0],n);ldexp(x[0],x[0]);frexp(x[0]);modf(x[0]);log(x[0],2)
    log(n);log1p(n);log2(x[0]);log10(n);exp(n);expm1(x[0]);sqrt(n);radians(n);degrees(x[0]);atan2(n,x[0])
    prod((1,2));dist((1,),(2,));nextafter(x[0],1.0);remainder(x[0],2);pi;tau;inf;nan;sumprod((1,),(2,))
    """,
)
EVERY = [*OF_ARRAYS, *OF_CUDA, *OF_PYTHON, *OF_NUMPY, *OF_MATH]

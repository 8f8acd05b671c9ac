"""The form in which Triton prints its IR, and MLIR most dialects: `tt.load %p, %mask : tensor<64x!tt.ptr<f32>>`.

form.py       how one op is written, in MLIR's notation of assembly formats
forms.py      the forms of `tt`, `arith`, `math`, `cf`
regions.py    ops with regions, which need more than a form: functions, loops, branches
parser.py     a parser that reads both this form and the generic one, and locations that are defined below their uses
"""

//! RMS norm of some rows on the processor, by a kernel written in Python and compiled by build.rs.

#[allow(non_snake_case, non_upper_case_globals, dead_code, clippy::all)]
mod layers {
    include!(concat!(env!("OUT_DIR"), "/layers/layers.rs"));
}

const ROWS: usize = 7;
const COLUMNS: usize = 512;

#[repr(align(64))] // the kernel is compiled for addresses that are multiples of 16
struct Matrix([f32; ROWS * COLUMNS]);

fn main() -> Result<(), layers::Error> {
    let x = Matrix(std::array::from_fn(|i| (i % 13) as f32 - 6.0));
    let weight = Matrix([0.5; ROWS * COLUMNS]);
    let mut out = Matrix([0.0; ROWS * COLUMNS]);
    let (n, eps, algo) = (COLUMNS as i32, 1e-5, 0);
    unsafe {
        layers::rms_norm(layers::CPU, x.0.as_ptr(), weight.0.as_ptr(), out.0.as_mut_ptr(), n, eps, ROWS as i32, algo)?;
    }
    let mut worst = 0f32;
    for (row, normed) in x.0.chunks(COLUMNS).zip(out.0.chunks(COLUMNS)) {
        let scale = (row.iter().map(|v| v * v).sum::<f32>() / COLUMNS as f32 + 1e-5).sqrt();
        for (before, after) in row.iter().zip(normed) {
            worst = worst.max((after - 0.5 * before / scale).abs());
        }
    }
    println!("{ROWS} rows of {COLUMNS}, largest difference {worst:.0e}");
    let wrong = unsafe {
        layers::rms_norm(layers::CPU, x.0.as_ptr(), weight.0.as_ptr(), out.0.as_mut_ptr(), n, eps, ROWS as i32, 99)
    };
    println!("algorithm 99: {}", wrong.unwrap_err());
    assert!(worst < 1e-5);
    Ok(())
}

//! The sub-tests by their names.

use super::user::User;
use super::{arithmetic, calculations, disk, files, ipc, memory, network, processes, shell};
use crate::Failure;
use experiment::did_you_mean;

/// One kind of work; doing it once is a job.
pub struct SubTest {
    /// Its name in the work files of the original.
    pub name: &'static str,
    /// Does it once, and checks that it added up.
    pub run: fn(&mut User) -> Result<(), Failure>,
    /// Programs that it starts.
    pub programs: &'static [&'static str],
    /// Processes that it has at a time besides the user's.
    pub processes: u64,
    /// Whether it works in the directory for the files of all users.
    pub has_files: bool,
}

impl std::fmt::Debug for SubTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const fn test(name: &'static str, run: fn(&mut User) -> Result<(), Failure>) -> SubTest {
    SubTest { name, run, programs: &[], processes: 0, has_files: false }
}

const fn with_files(name: &'static str, run: fn(&mut User) -> Result<(), Failure>) -> SubTest {
    SubTest { has_files: true, ..test(name, run) }
}

const fn starting(processes: u64, programs: &'static [&'static str], test: SubTest) -> SubTest {
    SubTest { programs, processes, ..test }
}

/// All of them, by family.
pub static ALL: &[SubTest] = &[
    test("add_double", |_| arithmetic::add_float::<f64>(1_500_000)),
    test("add_float", |_| arithmetic::add_float::<f32>(1_000_000)),
    test("add_long", |_| arithmetic::add::<i64>(5_000_000)),
    test("add_int", |_| arithmetic::add::<i32>(5_000_000)),
    test("add_short", |_| arithmetic::add::<i16>(2_000_000)),
    test("mul_double", |_| arithmetic::mul_float::<f64>(1_000_000)),
    test("mul_float", |_| arithmetic::mul_float::<f32>(1_000_000)),
    test("mul_long", |_| arithmetic::mul::<i64>(20_000)),
    test("mul_int", |_| arithmetic::mul::<i32>(20_000)),
    test("mul_short", |_| arithmetic::mul::<i16>(25_000)),
    test("div_double", |_| arithmetic::div_float::<f64>(250_000)),
    test("div_float", |_| arithmetic::div_float::<f32>(250_000)),
    test("div_long", |_| arithmetic::div::<i64>(75_000)),
    test("div_int", |_| arithmetic::div::<i32>(75_000)),
    test("div_short", |_| arithmetic::div::<i16>(75_000)),
    //
    test("array_rtns", |_| calculations::linear_systems()),
    test("matrix_rtns", |_| calculations::projections()),
    test("new_raph", |_| calculations::zeros()),
    test("num_rtns_1", |_| calculations::numeric_functions()),
    test("series_1", |_| calculations::series()),
    test("sieve", |_| calculations::sieve()),
    test("sort_rtns_1", |user| calculations::sorts(&mut user.random)),
    test("trig_rtns", |_| calculations::trigonometry()),
    //
    test("brk_test", |_| memory::brk_test()),
    test("mem_rtns_1", |_| memory::allocations()),
    test("mem_rtns_2", |_| memory::block_operations()),
    test("page_test", |_| memory::page_test()),
    test("ram_copy", |_| memory::ram_copy()),
    test("string_rtns", |_| memory::strings()),
    //
    with_files("creat_clo", files::create_and_close),
    test("dir_rtns_1", |_| files::read_directory()),
    with_files("disk_src", files::search),
    with_files("link_test", files::links),
    //
    with_files("disk_cp", |user| disk::copy(user, false)),
    with_files("disk_rd", disk::read),
    with_files("disk_rr", disk::read_random),
    with_files("disk_rw", |user| disk::write_random(user, false)),
    with_files("disk_wrt", |user| disk::write(user, false)),
    with_files("sync_disk_cp", |user| disk::copy(user, true)),
    with_files("sync_disk_rw", |user| disk::write_random(user, true)),
    with_files("sync_disk_update", disk::update),
    with_files("sync_disk_wrt", |user| disk::write(user, true)),
    //
    starting(1, &["true"], test("exec_test", |_| processes::exec_test())),
    starting(1, &[], test("fork_test", |_| processes::fork_test())),
    test("jmp_test", |_| processes::jumps()),
    test("misc_rtns_1", |_| processes::miscellaneous()),
    test("signal_test", |_| processes::signals()),
    //
    test("dgram_pipe", |_| ipc::datagrams()),
    test("pipe_cpy", |_| ipc::pipe()),
    test("shared_memory", |_| ipc::shared_memory()),
    test("stream_pipe", |_| ipc::stream()),
    //
    test("tcp_test", |_| network::tcp()),
    test("udp_test", |_| network::udp()),
    //
    starting(2, &["sh", "ls"], with_files("shell_rtns_1", |user| shell::list(user))),
    starting(4, &["sh", "sort", "wc"], with_files("shell_rtns_2", |user| shell::pipeline(user))),
    starting(1, &["sh"], with_files("shell_rtns_3", |user| shell::script(user))),
];

/// The sub-test of this name.
///
/// # Errors
/// When there is none; the error names the nearest.
pub fn find(name: &str) -> Result<&'static SubTest, Failure> {
    ALL.iter().find(|test| test.name == name).ok_or_else(|| {
        let hint = did_you_mean(name, ALL.iter().map(|test| test.name));
        Failure::Refused(format!("no sub-test is called `{name}`; {hint}"))
    })
}

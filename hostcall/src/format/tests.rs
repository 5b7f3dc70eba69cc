use super::*;

/// Arguments as HIP stores them.
fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn stored_text(text: &[u8]) -> Vec<u8> {
    let mut stored = text.to_vec();
    stored.resize((text.len() + 1).next_multiple_of(8), 0);
    stored
}

fn print(text: &str, arguments: &[u8]) -> (String, Outcome) {
    let mut out = Vec::new();
    let outcome = format(&mut out, text.as_bytes(), &mut Words::new(arguments), &Limits::default());
    (String::from_utf8_lossy(&out).into_owned(), outcome)
}

fn limited(text: &str, arguments: &[u8], limits: Limits) -> (Vec<u8>, Outcome) {
    let mut out = Vec::new();
    let outcome = format(&mut out, text.as_bytes(), &mut Words::new(arguments), &limits);
    (out, outcome)
}

#[test]
fn every_conversion_prints_as_in_c() {
    let minus_one = u64::from(u32::MAX);
    let cases: &[(&str, &[u64], &str)] = &[
        ("%d %i", &[minus_one, 7], "-1 7"),
        ("%u %o %x %X", &[minus_one, 8, 0xabc, 0xabc], "4294967295 10 abc ABC"),
        (
            "%hhd %hd %ld %lld",
            &[0x180, 0x1_8000, u64::MAX, 1 << 40],
            "-128 -32768 -1 1099511627776",
        ),
        ("%jd %zd %td %Ld", &[u64::MAX; 4], "-1 -1 -1 -1"),
        ("%zu", &[u64::MAX], "18446744073709551615"),
        ("%#o %#x %#X %#o %#x", &[8, 255, 255, 0, 0], "010 0xff 0XFF 0 0"),
        ("[%5d] [%-5d] [%05d] [%+d] [% d]", &[42; 5], "[   42] [42   ] [00042] [+42] [ 42]"),
        ("[%8.3d] [%.0d] [%08.3d]", &[5, 0, 5], "[     005] [] [     005]"),
        ("[%*d] [%-*d] [%.*d]", &[4, 7, 4, 7, 3, 7], "[   7] [7   ] [007]"),
        ("%c%c", &[0x41, 0x1_0042], "AB"),
        ("%p %p [%12p]", &[0, 0xdead, 0x10], "(nil) 0xdead [        0x10]"),
        ("100%% %d%%", &[5], "100% 5%"),
        ("%'d", &[1_234_567], "1234567"),
    ];
    for (text, values, wanted) in cases {
        let (got, outcome) = print(text, &words(values));
        assert_eq!(got, *wanted, "{text}");
        assert!(outcome.is_clean(), "{text}: {outcome:?}");
        assert_eq!(usize::try_from(outcome.result()), Ok(wanted.len()), "{text}");
    }
}

#[test]
fn doubles_print_as_in_c() {
    let cases: &[(&str, f64, &str)] = &[
        ("%f", 1.5, "1.500000"),
        ("%.0f", 2.5, "2"),
        ("%.0f", 0.5, "0"),
        ("%#.0f", 3.5, "4."),
        ("%.3e", 12345.678, "1.235e+04"),
        ("%G", 1e-10, "1E-10"),
        ("%g", 100_000.0, "100000"),
        ("%g", 1_000_000.0, "1e+06"),
        ("%#g", 1.0, "1.00000"),
        ("%a", 1.0, "0x1p+0"),
        ("%.0a", 1.5, "0x2p+0"),
        ("%A", 5e-324, "0X0.0000000000001P-1022"),
        ("%05f", f64::INFINITY, "  inf"),
        ("%F", f64::NEG_INFINITY, "-INF"),
        ("%+g", f64::NAN, "+nan"),
        ("%010.2f", -3.15, "-000003.15"),
        ("%Lf", 0.25, "0.250000"),
        ("%.1f", 0.25, "0.2"),
        ("%.20g", 0.1, "0.10000000000000000555"),
    ];
    for (text, value, wanted) in cases {
        let (got, outcome) = print(text, &value.to_bits().to_le_bytes());
        assert_eq!(got, *wanted, "{text} of {value:e}");
        assert!(outcome.is_clean());
    }
}

#[test]
fn huge_precisions_of_doubles_are_exact_digits_then_zeros() {
    let (got, outcome) = print("%.2000f", &5e-324f64.to_bits().to_le_bytes());
    assert_eq!(outcome.result(), 2002);
    assert!(got.starts_with("0.000") && got.ends_with("0000"));
    // 2^-1074 ends with ...625 at its 1074th digit.
    assert_eq!(&got[2 + 1074 - 3..2 + 1074 + 1], "6250");
}

#[test]
fn percent_n_consumes_its_argument_and_writes_nothing() {
    let (got, outcome) = print("a%nb%d", &words(&[0xdead_beef, 7]));
    assert_eq!(got, "ab7");
    assert!(outcome.is_clean());
}

#[test]
fn strings_are_padded_cut_and_followed_by_the_right_argument() {
    for length in 0..20 {
        let text = "x".repeat(length);
        let mut arguments = stored_text(text.as_bytes());
        arguments.extend_from_slice(&words(&[77]));
        assert_eq!(print("[%10s]%d", &arguments).0, format!("[{text:>10}]77"));
        // The stored text is skipped whole, however little of it is printed.
        assert_eq!(print("%.3s|%d", &arguments).0, format!("{text:.3}|77"));
    }
}

#[test]
fn an_unterminated_string_ends_with_the_arguments() {
    let (got, outcome) = print("<%s>", b"12345678abcdefgh");
    assert_eq!(got, "<12345678abcdefgh>");
    assert_eq!(outcome.unterminated, 1);
}

#[test]
fn a_null_string_prints_as_in_glibc() {
    struct Null;
    impl Arguments for Null {
        fn integer(&mut self, _: bool) -> Result<u64, Fault> {
            Err(Fault::Missing)
        }
        fn float(&mut self) -> Result<f64, Fault> {
            Err(Fault::Missing)
        }
        fn text(&mut self) -> Result<Text<'_>, Fault> {
            Ok(Text::Null)
        }
        fn skip(&mut self) -> Result<(), Fault> {
            Ok(())
        }
    }
    let mut out = Vec::new();
    let outcome = format(&mut out, b"%s|%.5s|%.6s|%8s", &mut Null, &Limits::default());
    assert_eq!(out, b"(null)||(null)|  (null)");
    assert!(outcome.is_clean());
}

#[test]
fn a_null_string_that_took_no_bytes_prints_nothing_and_moves_nothing() {
    let text = "%d [%s] %d\n";
    let take = needs(text.as_bytes());
    assert_eq!(take, Needs { words: 2, texts: 1 });
    let print = |arguments: &[u8]| {
        let mut out = Vec::new();
        let mut words = Words::with_absent_texts(arguments, take.words);
        let outcome = format(&mut out, text.as_bytes(), &mut words, &Limits::default());
        assert!(outcome.is_clean());
        String::from_utf8(out).unwrap()
    };
    assert_eq!(print(&words(&[1, 2])), "1 [] 2\n");
    let present = [words(&[1]), stored_text(b"text of two words"), words(&[2])].concat();
    assert_eq!(print(&present), "1 [text of two words] 2\n");
}

#[test]
fn missing_arguments_print_as_zero_or_empty_and_the_rest_is_printed() {
    let (got, outcome) = print("%d %s|%f %c|%p %x end", &words(&[5]));
    assert_eq!(got, "5 |0.000000 |(nil) 0 end");
    assert_eq!(outcome.missing, 5);
    assert_eq!(usize::try_from(outcome.result()), Ok(got.len()));
}

#[test]
fn conversions_outside_the_grammar_print_themselves_and_consume_their_arguments() {
    // `%1$d` and `%q d` end at the d, as the compiler has it, and take one word each.
    let (got, outcome) = print("%1$d %q d %d", &words(&[1, 2, 3]));
    assert_eq!(got, "%1$d %q d 3");
    assert_eq!(outcome.unknown, 2);
    // Three stars take three words.
    let (got, _) = print("%**.*d %d", &words(&[1, 2, 3, 4, 5]));
    assert_eq!(got, "%**.*d 5");
    // The compiler stores a text for `%ls` too.
    let arguments = [stored_text(b"ten bytes!"), words(&[6])].concat();
    assert_eq!(print("%ls %d", &arguments).0, "%ls 6");
    // Vectors are OpenCL's.
    assert_eq!(print("%v4hlf %d", &words(&[1, 7])).0, "%v4hlf 7");
}

#[test]
fn a_percent_without_a_conversion_prints_the_rest() {
    for text in ["50%", "50% ", "50%-08.3l", "%*"] {
        let (got, outcome) = print(text, &[]);
        assert_eq!(got, text);
        assert_eq!(outcome.unknown, 1);
    }
}

#[test]
fn wide_characters_are_utf_8() {
    assert_eq!(print("%lc%lc%lc", &words(&[0x20ac, 0xd800, 0x11_0000])).0, "€\u{fffd}\u{fffd}");
}

#[test]
fn stars_are_the_low_32_bits_as_int() {
    let minus_six = u64::from((-6i32).cast_unsigned());
    assert_eq!(print("[%*d]", &words(&[minus_six, 1])).0, "[1     ]");
    assert_eq!(print("[%.*d]", &words(&[minus_six, 0])).0, "[0]");
    assert_eq!(print("[%*d]", &words(&[0xffff_ffff_0000_0003, 1])).0, "[  1]");
}

#[test]
fn limits_cut_the_output_but_not_the_count() {
    let limits = Limits { width: 10, precision: 20, message_bytes: 64 };
    let (out, outcome) = limited("%1000d|", &words(&[7]), limits);
    assert_eq!(out, b"          7|");
    assert_eq!((outcome.needed, outcome.result()), (1001, -1));
    assert_eq!(outcome.cut, Cut { width: true, ..Cut::default() });

    let (out, outcome) = limited("%.1000d|", &words(&[7]), limits);
    assert_eq!(out, b"000000000000000000007|");
    assert_eq!(outcome.cut, Cut { precision: true, ..Cut::default() });
    assert_eq!(outcome.needed, 1001);

    let text = stored_text(&[b'z'; 100]);
    let (out, outcome) = limited("%s!", &text, limits);
    assert_eq!(out, [b'z'; 64]);
    assert_eq!(outcome.cut, Cut { message: true, ..Cut::default() });
    assert_eq!((outcome.needed, outcome.result()), (101, -1));
}

#[test]
fn absurd_widths_cost_no_more_than_the_limits() {
    let limits = Limits { width: 1 << 20, precision: 1 << 20, message_bytes: 1 << 10 };
    let text = "%2147483647d%*d%.2147483647f%99999999999999999999d".repeat(100);
    let smallest = u64::from(i32::MIN.cast_unsigned());
    let (out, outcome) = limited(&text, &words(&[1, smallest, 1, 0, 1].repeat(100)), limits);
    assert_eq!(out.len(), 1 << 10);
    assert_eq!(outcome.result(), -1);
    assert!(outcome.needed > 800 << 30);
}

#[test]
fn a_length_beyond_an_int_is_minus_one() {
    let limits = Limits { width: 1, precision: 1, message_bytes: 16 };
    let (_, outcome) = limited("%2147483647d%d", &words(&[1, 1]), limits);
    assert_eq!(outcome.needed, 1 << 31);
    assert_eq!(outcome.result(), -1);
}

#[test]
fn a_format_ends_at_its_first_nul() {
    assert_eq!(
        print("ab\0%d", &[]),
        ("ab".to_owned(), Outcome { needed: 2, ..Outcome::default() })
    );
}

#[test]
fn output_is_appended() {
    let mut out = b"before ".to_vec();
    let _ = format(&mut out, b"after", &mut Words::new(&[]), &Limits::default());
    assert_eq!(out, b"before after");
}

#[test]
fn needs_are_counted_as_the_compiler_does() {
    let cases = [
        ("", 0, 0),
        ("no arguments 100%%", 0, 0),
        ("%d %s %5.2f %lld %c %p %%", 5, 1),
        ("%*.*f %-*s", 4, 1),
        ("%1$d %ls %n", 2, 1),
        ("tail %", 0, 0),
    ];
    for (text, words, texts) in cases {
        assert_eq!(needs(text.as_bytes()), Needs { words, texts }, "{text}");
    }
}

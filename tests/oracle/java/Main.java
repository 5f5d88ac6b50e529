package oracle;

import java.util.Arrays;

/**
 * Holds the vendor's unmodified Java SDK to the emulator.
 *
 * <pre>
 *   javaworker worker -endpoint=URL -instance=NAME -key-id=ID -tunnel=ID [...]
 *   javaworker walk   -endpoint=URL -admin=URL -instance=NAME -key-id=ID
 *   javaworker scan   -endpoint=URL -instance=NAME -key-id=ID -tables=A,B -keys=K,L [-columns=X,Y]
 * </pre>
 *
 * Flags and output are those of the program around the Go SDK (../go/main.go); what only one of them has is said in
 * {@link Worker}, {@link Walk} and {@link Scan}. The AccessKey secret comes from -key-secret, or from the environment variable
 * OTS_KEY_SECRET when the flag is absent, an STS token from -sts-token.
 */
public final class Main {
    private Main() {}

    /** Runs a command; the exit status is 2 when there is no such command or flag. */
    public static void main(String[] arguments) throws Exception {
        String command = arguments.length == 0 ? "" : arguments[0];
        try {
            Flags flags = new Flags(Arrays.asList(arguments).subList(Math.min(1, arguments.length), arguments.length));
            if (command.equals("worker")) {
                System.exit(new Worker(flags, others -> Outlet.NONE).run());
            }
            if (command.equals("walk")) {
                System.exit(new Walk(flags).run());
            }
            if (command.equals("scan")) {
                System.exit(new Scan(flags).run());
            }
            throw new Flags.Wrong("usage: javaworker worker|walk|scan FLAGS");
        } catch (Flags.Wrong wrong) {
            System.err.println(wrong.getMessage());
            System.exit(2);
        }
    }
}

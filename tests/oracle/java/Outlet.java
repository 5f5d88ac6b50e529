package oracle;

import com.alicloud.openservices.tablestore.model.StreamRecord;
import java.io.IOException;
import java.util.List;

/** Takes the records of a batch to another place; they are stored there when it returns. */
interface Outlet {
    /** For modes that only look at records. */
    Outlet NONE = (channel, records) -> { };

    void write(String channel, List<StreamRecord> records) throws IOException;

    /** Opens the outlet that the flags of a worker name. */
    interface Opener {
        Outlet open(Flags flags) throws IOException;
    }
}

package oracle;

import static oracle.Rows.key;
import static oracle.Rows.v;
import static oracle.Walk.equal;

import com.alicloud.openservices.tablestore.DefaultTableStoreWriter;
import com.alicloud.openservices.tablestore.TableStoreCallback;
import com.alicloud.openservices.tablestore.TableStoreException;
import com.alicloud.openservices.tablestore.core.auth.DefaultCredentials;
import com.alicloud.openservices.tablestore.model.Condition;
import com.alicloud.openservices.tablestore.model.RowChange;
import com.alicloud.openservices.tablestore.model.RowPutChange;
import com.alicloud.openservices.tablestore.writer.RowWriteResult;
import com.alicloud.openservices.tablestore.writer.WriterConfig;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/** Rows that the SDK puts into batches by itself, one of which is refused. */
final class WalkWriter extends Section {
    WalkWriter(Walk walk) {
        super(walk);
    }

    @Override
    void run() {
        w.step("the SDK's writer", this::write);
    }

    private void write() {
        AtomicInteger written = new AtomicInteger();
        Queue<String> failed = new ConcurrentLinkedQueue<>();
        DefaultTableStoreWriter writer = new DefaultTableStoreWriter(
                w.account.endpoint, new DefaultCredentials(w.account.keyId, w.account.keySecret), w.account.instance, "batch2",
                new WriterConfig(), w.account.configuration(), new TableStoreCallback<RowChange, RowWriteResult>() {
                    @Override
                    public void onCompleted(RowChange change, RowWriteResult result) {
                        written.incrementAndGet();
                    }

                    @Override
                    public void onFailed(RowChange change, Exception refusal) {
                        failed.add(Rows.show(change.getPrimaryKey()) + " " + ((TableStoreException) refusal).getErrorCode());
                    }
                });
        for (int number = 0; number < 1000; number++) {
            writer.addRowChange(putChange("batch2", key("writer" + number), v("n", number, 1)));
        }
        RowPutChange impossible = putChange("batch2", key("x"));
        impossible.setCondition(new Condition(MUST_NOT_EXIST));
        writer.addRowChange(impossible);
        writer.flush();
        writer.close();
        equal("written", written.get(), 1000);
        equal("failed", List.copyOf(failed), List.of("[x] OTSConditionCheckFail"));
        wants("[writer999] n@1=999", "batch2", key("writer999"));
    }
}

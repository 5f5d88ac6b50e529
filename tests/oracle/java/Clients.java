package oracle;

import com.alicloud.openservices.tablestore.TableStoreException;
import com.alicloud.openservices.tablestore.TunnelClientInterface;
import com.alicloud.openservices.tablestore.model.tunnel.internal.ReadRecordsRequest;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Passes the worker's calls on and records what its callbacks do not receive: readers of channels, refused calls. */
final class Clients {
    private final TunnelClientInterface client;
    private final Map<String, String> readers = new ConcurrentHashMap<>();
    private volatile TableStoreException refusal;

    Clients(TunnelClientInterface behind) {
        client = (TunnelClientInterface) Proxy.newProxyInstance(
                Clients.class.getClassLoader(), new Class<?>[] {TunnelClientInterface.class},
                (proxy, method, arguments) -> call(behind, method, arguments));
    }

    private Object call(TunnelClientInterface behind, Method method, Object[] arguments) throws Throwable {
        if (arguments != null && arguments[0] instanceof ReadRecordsRequest) {
            ReadRecordsRequest request = (ReadRecordsRequest) arguments[0];
            readers.put(request.getChannelId(), request.getClientId());
        }
        try {
            return method.invoke(behind, arguments);
        } catch (InvocationTargetException failed) {
            if (failed.getCause() instanceof TableStoreException) {
                refusal = (TableStoreException) failed.getCause();
            }
            throw failed.getCause();
        }
    }

    TunnelClientInterface client() {
        return client;
    }

    /** The client that has read a channel last. */
    String reader(String channel) {
        return readers.getOrDefault(channel, "");
    }

    /** The last error of the service, written like the Go SDK's. */
    String lastRefusal() {
        TableStoreException last = refusal;
        return last == null ? "nothing" : "RequestId: " + last.getRequestId() + ", Code: " + last.getErrorCode()
                + ", Message: " + last.getMessage();
    }
}

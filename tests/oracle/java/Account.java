package oracle;

import com.alicloud.openservices.tablestore.ClientConfiguration;
import com.alicloud.openservices.tablestore.SyncClient;
import com.alicloud.openservices.tablestore.TunnelClient;
import com.alicloud.openservices.tablestore.core.auth.CredentialsProvider;
import com.alicloud.openservices.tablestore.core.auth.DefaultCredentialProvider;
import com.alicloud.openservices.tablestore.core.auth.DefaultCredentials;
import com.alicloud.openservices.tablestore.core.auth.ServiceCredentials;
import com.alicloud.openservices.tablestore.core.auth.V4Credentials;

/** Whom a command acts for, where, and how; a region selects signature V4. */
final class Account {
    String endpoint;
    String instance;
    String keyId;
    String keySecret;
    String stsToken;
    String region;
    boolean compressed;

    Account(Flags flags) {
        endpoint = flags.text("endpoint");
        instance = flags.text("instance");
        keyId = flags.text("key-id");
        keySecret = flags.text("key-secret", System.getenv("OTS_KEY_SECRET"));
        stsToken = flags.text("sts-token", null);
        region = flags.text("region", null);
        compressed = flags.isSet("compress");
    }

    Account(Account other) {
        endpoint = other.endpoint;
        instance = other.instance;
        keyId = other.keyId;
        keySecret = other.keySecret;
        stsToken = other.stsToken;
        region = other.region;
        compressed = other.compressed;
    }

    ClientConfiguration configuration() {
        ClientConfiguration configuration = new ClientConfiguration();
        configuration.setEnableRequestCompression(compressed);
        configuration.setEnableResponseCompression(compressed);
        configuration.setEnableResponseContentMD5Checking(true);
        return configuration;
    }

    SyncClient tables(ClientConfiguration configuration) {
        return new SyncClient(endpoint, credentials(), instance, configuration, null);
    }

    TunnelClient tunnels(ClientConfiguration configuration) {
        return new TunnelClient(endpoint, credentials(), instance, configuration, null);
    }

    private CredentialsProvider credentials() {
        ServiceCredentials plain = new DefaultCredentials(keyId, keySecret, stsToken);
        return new DefaultCredentialProvider(
                region == null ? plain : V4Credentials.createByServiceCredentials(plain, region));
    }
}

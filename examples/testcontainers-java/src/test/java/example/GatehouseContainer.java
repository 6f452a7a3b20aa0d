package example;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;
import org.testcontainers.utility.MountableFile;

/** Gatehouse in a container, for tests. */
final class GatehouseContainer extends GenericContainer<GatehouseContainer> {
  private static final int INSIDE = 3000;

  private final String url;

  /** @param tenantFile a tenant file of this machine: what it serves */
  GatehouseContainer(DockerImageName image, Path tenantFile) {
    super(image);
    // The address is in every token, so it must be known before the start: the port cannot be one that the engine chooses.
    int port = freePort();
    url = "https://localhost:" + port;
    addFixedExposedPort(port, INSIDE);
    // Not production: it makes a certificate of its own, and the tenant file may have users and short secrets.
    withEnv("NODE_ENV", "development");
    withEnv("TLS", "auto");
    withEnv("BASE_URL", url);
    withCopyFileToContainer(MountableFile.forHostPath(tenantFile, 0444), "/config/tenant.yaml");
    waitingFor(Wait.forLogMessage(".*\"msg\":\"listening\".*", 1));
  }

  /** Its address. The issuer of its tokens has a slash after it. */
  String url() {
    return url;
  }

  /** What trusts its certificate, and no other. */
  SSLContext trust() throws GeneralSecurityException {
    KeyStore store;
    try {
      store = KeyStore.getInstance(KeyStore.getDefaultType());
      store.load(null);
      store.setCertificateEntry("gatehouse", copyFileFromContainer("/data/tls/ca.pem", GatehouseContainer::certificate));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    managers.init(store);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, managers.getTrustManagers(), null);
    return context;
  }

  private static java.security.cert.Certificate certificate(InputStream pem) throws GeneralSecurityException {
    return CertificateFactory.getInstance("X.509").generateCertificate(pem);
  }

  private static int freePort() {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}

package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.nimbusds.jose.crypto.RSASSAVerifier;
import com.nimbusds.jose.jwk.JWKSet;
import com.nimbusds.jose.util.JSONObjectUtils;
import com.nimbusds.jwt.SignedJWT;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.testcontainers.utility.DockerImageName;

/** An access token from a Gatehouse that runs in a container of this test. */
class GatehouseTest {
  private static final String API = "https://api.example.test/";

  private static GatehouseContainer gatehouse;
  private static HttpClient client;

  @BeforeAll
  static void start() throws Exception {
    String image = Objects.requireNonNullElse(System.getenv("GATEHOUSE_IMAGE"), "gatehouse:local");
    gatehouse = new GatehouseContainer(DockerImageName.parse(image), Path.of("config/tenant.yaml"));
    gatehouse.start();
    client = HttpClient.newBuilder().sslContext(gatehouse.trust()).build();
  }

  @AfterAll
  static void stop() {
    gatehouse.stop();
  }

  private static HttpResponse<String> askForToken(String secret) throws Exception {
    String form = "grant_type=client_credentials&client_id=machine&client_secret=" + secret + "&audience=" + API;
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(gatehouse.url() + "/oauth/token"))
            .header("content-type", "application/x-www-form-urlencoded")
            .POST(HttpRequest.BodyPublishers.ofString(form))
            .build();
    return client.send(request, BodyHandlers.ofString());
  }

  @Test
  void theApplicationGetsAnAccessTokenForTheApi() throws Exception {
    HttpResponse<String> answer = askForToken("machine-example-secret");
    assertEquals(200, answer.statusCode(), answer.body());
    SignedJWT token = SignedJWT.parse((String) JSONObjectUtils.parse(answer.body()).get("access_token"));

    URI keys = URI.create(gatehouse.url() + "/.well-known/jwks.json");
    String set = client.send(HttpRequest.newBuilder(keys).build(), BodyHandlers.ofString()).body();
    var key = JWKSet.parse(set).getKeyByKeyId(token.getHeader().getKeyID()).toRSAKey();
    assertTrue(token.verify(new RSASSAVerifier(key)));
    assertEquals(gatehouse.url() + "/", token.getJWTClaimsSet().getIssuer());
    assertEquals(List.of(API), token.getJWTClaimsSet().getAudience());
    assertEquals("read:messages", token.getJWTClaimsSet().getStringClaim("scope"));
  }

  @Test
  void withAWrongSecretItGetsNone() throws Exception {
    assertEquals(401, askForToken("wrong").statusCode());
  }
}

// Manages a tenant with com.auth0:auth0, and prints a line for each step that worked.
import com.auth0.client.mgmt.ManagementApi;
import com.auth0.client.mgmt.core.ManagementApiException;
import com.auth0.client.mgmt.organizations.types.CreateOrganizationMemberRequestContent;
import com.auth0.client.mgmt.types.*;
import java.util.List;
import java.util.Map;
import java.util.stream.StreamSupport;

public class Manage {
  static final String DATABASE = "Username-Password-Authentication";

  static void hold(boolean holds, String what) {
    if (!holds) throw new IllegalStateException("wrong: " + what);
  }

  static void step(String text) {
    System.out.println("step " + text);
  }

  static void refused(String what, Runnable call) {
    try {
      call.run();
    } catch (ManagementApiException error) {
      System.out.println("refused " + what + ": " + error.statusCode() + " " + ((Map<?, ?>) error.body()).get("message"));
      return;
    }
    throw new IllegalStateException(what + " was not refused");
  }

  static <T> boolean any(Iterable<T> all, java.util.function.Predicate<T> is) {
    return StreamSupport.stream(all.spliterator(), false).anyMatch(is);
  }

  public static void main(String[] args) {
    ManagementApi api = ManagementApi.builder()
        .domain(System.getenv("AUTH0_DOMAIN"))
        .clientCredentials(System.getenv("AUTH0_CLIENT_ID"), System.getenv("AUTH0_CLIENT_SECRET"))
        .build();
    System.out.println("version " + args[0]);

    String client = api.clients()
        .create(CreateClientRequestContent.builder().name("Java").appType(ClientAppTypeEnum.REGULAR_WEB).build())
        .getClientId().get();
    api.clients().update(client, UpdateClientRequestContent.builder().description("changed").build());
    hold(api.clients().get(client).getDescription().get().equals("changed"), "the description");
    hold(any(api.clients().list(), one -> one.getName().get().equals("Java")), "the list of applications");
    step("applications");

    CreateConnectionRequestContent database = CreateConnectionRequestContent.builder()
        .name("java-database").strategy(ConnectionIdentityProviderEnum.AUTH0).build();
    String connection = api.connections().create(database).getId().get();
    api.connections().update(connection, UpdateConnectionRequestContent.builder().displayName("Changed").build());
    hold(api.connections().get(connection).getDisplayName().get().equals("Changed"), "the display name");
    ListConnectionsQueryParameters single = ListConnectionsQueryParameters.builder().take(1).build();
    hold(any(api.connections().list(single), one -> one.getName().get().equals("java-database")), "the list of connections");
    step("connections");

    String user = api.users()
        .create(CreateUserRequestContent.builder().connection(DATABASE)
            .email("java@example.test").password("A-long-Passw0rd!").build())
        .getUserId().get();
    api.users().update(user, UpdateUserRequestContent.builder().nickname("Bean").build());
    ListUsersRequestParameters search = ListUsersRequestParameters.builder().q("email:\"java@example.test\"").build();
    hold(any(api.users().list(search), one -> one.getUserId().get().equals(user)), "the search");
    step("users");

    String organization = api.organizations()
        .create(CreateOrganizationRequestContent.builder().name("beans").build()).getId().get();
    api.organizations().update(organization, UpdateOrganizationRequestContent.builder().displayName("Changed").build());
    api.organizations().members()
        .create(organization, CreateOrganizationMemberRequestContent.builder().members(List.of(user)).build());
    hold(any(api.organizations().members().list(organization), one -> one.getEmail().get().equals("java@example.test")), "the members");
    hold(any(api.organizations().list(), one -> one.getName().get().equals("beans")), "the list of organizations");
    step("organizations");

    refused("a second connection of the name", () -> api.connections().create(database));

    api.organizations().delete(organization);
    api.users().delete(user);
    api.connections().delete(connection);
    api.clients().delete(client);
    refused("a deleted application", () -> api.clients().get(client));
    step("deletions");
    System.exit(0);
  }
}

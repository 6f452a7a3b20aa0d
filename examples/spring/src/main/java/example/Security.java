package example;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.http.SessionCreationPolicy;
import org.springframework.security.oauth2.client.oidc.web.logout.OidcClientInitiatedLogoutSuccessHandler;
import org.springframework.security.oauth2.client.registration.ClientRegistrationRepository;
import org.springframework.security.oauth2.client.web.DefaultOAuth2AuthorizationRequestResolver;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.authentication.logout.LogoutSuccessHandler;

@Configuration
class Security {
  /** The API accepts access tokens that Gatehouse issued for it, with the scope that a route needs. */
  @Bean
  @Order(1)
  SecurityFilterChain apiRequests(HttpSecurity http) throws Exception {
    return http.securityMatcher("/api/**")
        .authorizeHttpRequests(requests -> requests
            .requestMatchers("/api/messages").hasAuthority("SCOPE_read:messages")
            .anyRequest().denyAll())
        .oauth2ResourceServer(server -> server.jwt(Customizer.withDefaults()))
        .sessionManagement(sessions -> sessions.sessionCreationPolicy(SessionCreationPolicy.STATELESS))
        .csrf(csrf -> csrf.disable())
        .build();
  }

  /** The web application logs users in. */
  @Bean
  @Order(2)
  SecurityFilterChain pageRequests(
      HttpSecurity http,
      ClientRegistrationRepository clients,
      @Value("${audience}") String audience) throws Exception {
    // The access token is for the API.
    var logins = new DefaultOAuth2AuthorizationRequestResolver(clients, "/oauth2/authorization");
    logins.setAuthorizationRequestCustomizer(
        request -> request.additionalParameters(parameters -> parameters.put("audience", audience)));
    return http
        .authorizeHttpRequests(requests -> requests
            .requestMatchers("/", "/style.css").permitAll()
            .anyRequest().authenticated())
        .oauth2Login(login -> login.authorizationEndpoint(
            endpoint -> endpoint.authorizationRequestResolver(logins)))
        .logout(logout -> logout.logoutSuccessHandler(endSessionAtGatehouse(clients)))
        .build();
  }

  private static LogoutSuccessHandler endSessionAtGatehouse(ClientRegistrationRepository clients) {
    var handler = new OidcClientInitiatedLogoutSuccessHandler(clients);
    handler.setPostLogoutRedirectUri("{baseUrl}");
    return handler;
  }
}

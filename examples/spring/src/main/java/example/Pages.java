package example;

import java.util.Map;
import org.springframework.http.HttpHeaders;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.client.OAuth2AuthorizedClient;
import org.springframework.security.oauth2.client.annotation.RegisteredOAuth2AuthorizedClient;
import org.springframework.security.oauth2.core.oidc.user.OidcUser;
import org.springframework.stereotype.Controller;
import org.springframework.ui.Model;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.client.RestClient;
import org.springframework.web.servlet.support.ServletUriComponentsBuilder;

@Controller
class Pages {
  @GetMapping("/")
  String home(@AuthenticationPrincipal OidcUser user, Model model) {
    if (user != null) model.addAttribute("email", user.getEmail());
    return "page";
  }

  @GetMapping("/messages")
  String messages(
      @AuthenticationPrincipal OidcUser user,
      @RegisteredOAuth2AuthorizedClient("gatehouse") OAuth2AuthorizedClient client,
      Model model) {
    var api = ServletUriComponentsBuilder.fromCurrentContextPath().path("/api/messages").toUriString();
    var answer = RestClient.create().get().uri(api)
        .header(HttpHeaders.AUTHORIZATION, "Bearer " + client.getAccessToken().getTokenValue())
        .retrieve().body(Map.class);
    model.addAttribute("email", user.getEmail());
    model.addAttribute("message", answer.get("message"));
    return "page";
  }
}

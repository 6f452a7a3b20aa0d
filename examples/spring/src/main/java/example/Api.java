package example;

import java.util.Map;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.jwt.Jwt;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
class Api {
  @GetMapping("/api/messages")
  Map<String, String> messages(@AuthenticationPrincipal Jwt token) {
    return Map.of("message", "The API knows you as " + token.getSubject());
  }
}

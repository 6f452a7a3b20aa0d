// Quickstart programs for frameworks in a browser, each a whole application in one file.
import { audienceLine, js, type QuickstartValues, quoted, type Snippet } from './snippet.ts';

export const vue = (values: QuickstartValues): Snippet =>
  js(
    '@auth0/auth0-vue',
    `// main.js, in src
import { createApp, h } from 'vue';
import { createAuth0, useAuth0 } from '@auth0/auth0-vue';

const App = {
  setup() {
    const { isLoading, isAuthenticated, user, loginWithRedirect, logout } = useAuth0();
    const logoutParams = { returnTo: ${quoted(values.afterLogout)} };
    return () => {
      if (isLoading.value) return null;
      if (!isAuthenticated.value) return h('button', { onClick: () => loginWithRedirect() }, 'Log in');
      return h('button', { onClick: () => logout({ logoutParams }) }, \`Log out \${user.value.email}\`);
    };
  },
};

createApp(App)
  .use(
    createAuth0({
      domain: ${quoted(values.domain)},
      clientId: ${quoted(values.clientId)},
      authorizationParams: {
        redirect_uri: ${quoted(values.callback)},${audienceLine(values, '        ')}
      },
    }),
  )
  .mount('#app');
`,
  );

export const angular = (values: QuickstartValues): Snippet => ({
  ...js('@auth0/auth0-angular', ''),
  language: 'ts',
  code: `// main.ts, in src
import { AsyncPipe } from '@angular/common';
import { Component, inject } from '@angular/core';
import { bootstrapApplication } from '@angular/platform-browser';
import { AuthService, provideAuth0 } from '@auth0/auth0-angular';

@Component({
  selector: 'app-root',
  imports: [AsyncPipe],
  template: \`
    @if (auth.user$ | async; as user) {
      <button (click)="auth.logout({ logoutParams })">Log out {{ user.email }}</button>
    } @else {
      <button (click)="auth.loginWithRedirect()">Log in</button>
    }
  \`,
})
class App {
  protected readonly auth = inject(AuthService);
  protected readonly logoutParams = { returnTo: ${quoted(values.afterLogout)} };
}

bootstrapApplication(App, {
  providers: [
    provideAuth0({
      domain: ${quoted(values.domain)},
      clientId: ${quoted(values.clientId)},
      authorizationParams: {
        redirect_uri: ${quoted(values.callback)},${audienceLine(values, '        ')}
      },
    }),
  ],
});
`,
});

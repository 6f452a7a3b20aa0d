import { provideHttpClient, withInterceptors } from '@angular/common/http';
import { bootstrapApplication } from '@angular/platform-browser';
import { authHttpInterceptorFn, provideAuth0 } from '@auth0/auth0-angular';
import { App } from './app';
import { environment } from './environment';

bootstrapApplication(App, {
  providers: [
    // The SDK adds the access token to the requests that are in its list.
    provideHttpClient(withInterceptors([authHttpInterceptorFn])),
    provideAuth0({
      domain: environment.domain,
      clientId: environment.clientId,
      authorizationParams: {
        redirect_uri: window.location.origin,
        audience: environment.audience,
        scope: 'openid profile email read:messages',
      },
      useRefreshTokens: true,
      cacheLocation: 'localstorage',
      httpInterceptor: { allowedList: ['/api/*'] },
    }),
  ],
}).catch((error: unknown) => console.error(error));

import tls from 'node:tls';
import { defineConfig } from 'cypress';
import { startGatehouse } from 'gatehouse/testing';
import { startApp } from './app.js';

export default defineConfig({
  e2e: {
    baseUrl: 'http://localhost:4000',
    supportFile: false,
    async setupNodeEvents(on, config) {
      // In the process of Cypress, which trusts the certificate from now on.
      const gatehouse = await startGatehouse({ tenant: 'config/tenant.yaml' });
      tls.setDefaultCACertificates([...tls.getCACertificates('default'), gatehouse.ca]);
      const app = startApp({ port: 4000, issuer: gatehouse.issuer });
      on('after:run', async () => {
        app.close();
        await gatehouse.stop();
      });
      // What the tests, which run in the browser, ask this process for.
      on('task', {
        reset: async () => {
          await gatehouse.reset();
          return null;
        },
        createUser: (user) => gatehouse.users.create(user),
      });
      return { ...config, env: { ...config.env, gatehouse: gatehouse.url } };
    },
  },
});

export default defineNuxtConfig({
  compatibilityDate: '2026-11-01',
  modules: ['@auth0/auth0-nuxt'],
  // The values are in .env, as NUXT_AUTH0_DOMAIN and so on.
  runtimeConfig: {
    apiPort: process.env.API_PORT,
    auth0: { domain: '', clientId: '', clientSecret: '', sessionSecret: '', appBaseUrl: '', audience: '' },
  },
  app: {
    head: {
      title: 'Nuxt example',
      htmlAttrs: { lang: 'en' },
      link: [{ rel: 'icon', href: 'data:,' }],
    },
  },
  css: ['~/assets/style.css'],
  devtools: { enabled: false },
});

import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: 'tests',
  reporter: 'list',
  use: {
    baseURL: 'http://localhost:4000',
    // The certificate of Gatehouse is one of its own authority.
    ignoreHTTPSErrors: true,
    // Without CHROMIUM_PATH the browser that `npx playwright install chromium` has installed.
    launchOptions: { executablePath: process.env.CHROMIUM_PATH },
  },
});

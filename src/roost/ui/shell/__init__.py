"""Parts that all pages share: navigation, the frame around a page, live updates, actions of buttons."""

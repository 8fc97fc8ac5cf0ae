import{$ as m,B as r,b as o,mb as p,na as i}from"./shell.js";var t=document.getElementById("app");t&&i().finally(()=>{r(),o(m(p,{}),t)});
